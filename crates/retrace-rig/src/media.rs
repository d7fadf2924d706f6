//! Images, sounds and documents.

use retrace_events::{Media, MediaKind, MediaSource};
use retrace_model::ModelError;
use rig_core::completion::message::{
    Audio, AudioMediaType, Document, DocumentMediaType, DocumentSourceKind, Image, ImageMediaType, MimeType,
    ToolResultContent, UserContent,
};
use rig_core::completion::{Media as RigMedia, Place};

use crate::secrets::shown;
use crate::target::Target;

/// A medium in a message of the user.
///
/// # Errors
/// [`ModelError::Refused`] if the model does not take it; left to rig it would become a note in its place.
pub(crate) fn sent_by_user(medium: &Media, target: &Target) -> Result<UserContent, ModelError> {
    let block = block(medium)?;
    let takes = match &block {
        UserContent::Image(image) => target.takes_images() && target.encodes(RigMedia::Image(image, Place::User)),
        UserContent::Audio(audio) => target.encodes(RigMedia::Audio(audio)),
        // rig sends a document of text as text where the provider takes none.
        UserContent::Document(document) => target.encodes(RigMedia::Document(document)) || is_text(document),
        _ => true,
    };
    if takes { Ok(block) } else { Err(not_taken(medium)) }
}

/// A medium of a result: in it if it is an image, and else in the message of the user that holds the results.
pub(crate) fn sent_by_tool(
    medium: &Media,
    target: &Target,
) -> Result<Result<ToolResultContent, UserContent>, ModelError> {
    // rig moves an image out of a result if the provider wants it so.
    match sent_by_user(medium, target)? {
        UserContent::Image(image) => Ok(Ok(ToolResultContent::Image(image))),
        other => Ok(Err(other)),
    }
}

/// Whether a medium can stand in a result.
pub(crate) fn fits_a_result(medium: &Media) -> bool {
    medium.kind == MediaKind::Image
}

fn block(medium: &Media) -> Result<UserContent, ModelError> {
    let data = match &medium.source {
        MediaSource::Data(data) => DocumentSourceKind::base64(data),
        MediaSource::Url(url) => DocumentSourceKind::url(url),
    };
    // Spelled in many ways; a parameter such as a charset follows a semicolon.
    let plain = medium.media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let block = match medium.kind {
        MediaKind::Image => ImageMediaType::from_mime_type(if plain == "image/jpg" { "image/jpeg" } else { &plain })
            .map(|media_type| UserContent::Image(Image { data, media_type: Some(media_type), ..Image::default() })),
        MediaKind::Audio => {
            let known = match &*plain {
                "audio/mpeg" => "audio/mp3",
                "audio/x-wav" | "audio/wave" => "audio/wav",
                other => other,
            };
            AudioMediaType::from_mime_type(known)
                .map(|media_type| UserContent::Audio(Audio { data, media_type: Some(media_type) }))
        }
        MediaKind::Document => DocumentMediaType::from_mime_type(&plain).map(|media_type| {
            UserContent::Document(Document { data, media_type: Some(media_type), ..Document::default() })
        }),
    };
    block.ok_or_else(|| not_taken(medium))
}

/// A medium as an event holds it, if it is of a known type and its bytes or its address are there.
pub(crate) fn held(kind: MediaKind, media_type: Option<&impl MimeType>, data: &DocumentSourceKind) -> Option<Media> {
    let source = match data {
        DocumentSourceKind::Base64(data) => MediaSource::Data(data.clone()),
        DocumentSourceKind::Url(url) => MediaSource::Url(url.clone()),
        _ => return None,
    };
    Some(Media { kind, media_type: media_type?.to_mime_type().to_owned(), source })
}

fn is_text(document: &Document) -> bool {
    document.media_type != Some(DocumentMediaType::PDF) && matches!(document.data, DocumentSourceKind::Base64(_))
}

fn not_taken(medium: &Media) -> ModelError {
    let (kind, media_type) = (medium.kind.as_str(), shown(&medium.media_type));
    let how = match medium.source {
        MediaSource::Data(_) => "",
        MediaSource::Url(_) => " by its address",
    };
    ModelError::Refused {
        message: format!(
            "the model takes no {kind} of type `{media_type}`{how}, and the history holds one: choose a model that does"
        ),
    }
}
