//! Rate limits in a configuration.

use std::fs;

use crate::program::retrace_in;

/// What is said of a configuration with this agent and these tables, whose recordings are not there.
fn said(agent: &str, models: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "[agent]\n{agent}\n{models}\n[[recordings]]\nfiles = [\"nothing\"]\nenvironment = \"recorded\"\n\
         [strategies.tail]\nkind = \"tail_window\"\ntarget = 4\n"
    );
    fs::write(folder.path().join("retrace.toml"), config).unwrap();
    retrace_in(folder.path(), &["verify"]).failed()
}

#[test]
fn a_model_has_one_rate_limit_whatever_it_is_called() {
    let agent = "model = \"openai:m\"\nrequests_per_minute = 60\ntokens_per_minute = 90_000";
    let cheap = |limit: &str| format!("[models.cheap]\nmodel = \"openai:m\"\n{limit}\n");
    for fine in ["", "max_tokens = 9", "requests_per_minute = 60\ntokens_per_minute = 90_000"] {
        let text = said(agent, &cheap(fine));
        assert!(text.contains("nothing"), "the recordings are what is missed: {text}");
    }
    let text = said(agent, &cheap("requests_per_minute = 30"));
    assert!(text.contains("`openai:m` has two rate limits") && text.contains("hint: all that asks it"), "{text}");
}

#[test]
fn a_rate_limit_is_a_whole_number_and_of_a_provider() {
    for value in ["0", "-1", "1.5", "\"60\""] {
        let text = said(&format!("model = \"openai:m\"\nrequests_per_minute = {value}"), "");
        assert!(text.contains("`requests_per_minute` is not a whole number of 1 or more"), "{value}: {text}");
    }
    let text = said("model = \"sim:shopkeeper\"\nrequests_per_minute = 60", "");
    assert!(text.contains("unknown field `requests_per_minute`"), "{text}");
}
