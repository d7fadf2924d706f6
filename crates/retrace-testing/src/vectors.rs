//! Vectors: cases with their answers, which were worked out by another method.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

/// The project's copy.
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors");

/// The rows of a file of vectors, `<group>/<file>`: of the project's copy, or of the folder that `RETRACE_VECTORS`
/// names. A file that such a folder lacks is passed over and has no rows. What is read or passed over is printed.
///
/// ```
/// for row in retrace_testing::vectors::rows("verifier/sign.jsonl") {
///     assert!(row["diffs"].is_array());
/// }
/// ```
///
/// # Panics
/// When the file cannot be read, has no rows or has one that is no JSON, and when the folder that `RETRACE_VECTORS`
/// names has none of the project's files, since a test of nothing must not pass.
pub fn rows(file: &str) -> Vec<Value> {
    rows_in(env::var_os("RETRACE_VECTORS").map(PathBuf::from).as_deref(), file)
}

#[expect(clippy::print_stdout, reason = "the output of a test says how much it tested")]
fn rows_in(named: Option<&Path>, file: &str) -> Vec<Value> {
    let path = named.unwrap_or(Path::new(OWN)).join(file);
    let text = match (fs::read_to_string(&path), named) {
        (Ok(text), _) => text,
        (Err(error), Some(folder)) if error.kind() == ErrorKind::NotFound => {
            assert!(
                has_any(folder),
                "`{}` has none of the files of `tests/vectors`: let `RETRACE_VECTORS` name a folder that has some, by a path from the root",
                folder.display()
            );
            println!("{file}: passed over, `{}` has no such file", folder.display());
            return Vec::new();
        }
        (Err(error), _) => panic!("failed to read `{}`: {error}", path.display()),
    };
    let row = |(number, line)| match serde_json::from_str(line) {
        Ok(row) => row,
        Err(error) => panic!("`{}`, line {number}: {error}", path.display()),
    };
    let rows: Vec<Value> = (1..).zip(text.lines()).map(row).collect();
    assert!(!rows.is_empty(), "`{}` has no rows", path.display());
    println!("{file}: {} cases", rows.len());
    rows
}

/// Whether a folder has a file at a place where the project's copy has one of vectors.
fn has_any(folder: &Path) -> bool {
    let own = Path::new(OWN);
    let mut files = entries(own).into_iter().filter(|group| group.is_dir()).flat_map(|group| entries(&group));
    files.any(|file| {
        let place = file.strip_prefix(own).expect("what is listed lies below");
        file.extension().is_some_and(|extension| extension == "jsonl") && folder.join(place).exists()
    })
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    paths.unwrap_or_else(|error| panic!("failed to list `{}`: {error}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "verifier/sign.jsonl";

    fn folder_with(file: &str, text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        folder
    }

    #[test]
    fn the_rows_are_those_of_the_named_folder_or_else_of_the_projects_copy() {
        let folder = folder_with(FILE, "{\"name\":\"a\"}\n{\"name\":\"b\"}\n");
        let named: Vec<_> = rows_in(Some(folder.path()), FILE).iter().map(|row| row["name"].clone()).collect();
        assert_eq!(named, ["a", "b"]);
        assert!(rows_in(None, FILE).len() > 2);
    }

    #[test]
    fn a_file_that_the_named_folder_lacks_is_passed_over() {
        let folder = folder_with(FILE, "{}\n");
        assert_eq!(rows_in(Some(folder.path()), "verifier/cuts.jsonl"), [Value::Null; 0]);
    }

    #[test]
    #[should_panic(expected = "/nonexistent` has none of the files of `tests/vectors`")]
    fn a_folder_that_is_not_there_is_no_test() {
        rows_in(Some(Path::new("/nonexistent")), FILE);
    }

    #[test]
    #[should_panic(expected = "has none of the files of `tests/vectors`")]
    fn a_folder_without_any_vectors_is_no_test() {
        rows_in(Some(folder_with("verifier/README.md", "# Vectors\n").path()), FILE);
    }

    #[test]
    #[should_panic(expected = "failed to read")]
    fn the_projects_copy_has_every_file_asked_for() {
        rows_in(None, "verifier/sine.jsonl");
    }

    #[test]
    #[should_panic(expected = "has no rows")]
    fn a_file_without_rows_is_no_test() {
        rows_in(Some(folder_with(FILE, "").path()), FILE);
    }

    #[test]
    #[should_panic(expected = "sign.jsonl`, line 2: ")]
    fn a_row_that_is_no_json_is_named() {
        rows_in(Some(folder_with(FILE, "{}\n{\n").path()), FILE);
    }
}
