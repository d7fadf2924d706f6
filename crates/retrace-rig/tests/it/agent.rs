//! What an agent of rig sends when its history is compacted.

use serde_json::Value;

#[path = "../../examples/agent.rs"]
#[expect(dead_code, reason = "the example's `main` is for the command line")]
mod example;

#[tokio::test]
async fn each_request_of_an_agent_goes_on_from_the_compacted_history() {
    let provider = example::Played::default();
    example::converse(&provider).await.unwrap();
    let asked = provider.asked.lock().unwrap();
    let lengths: Vec<_> = asked.iter().map(Vec::len).collect();
    // The second question is asked in the eighth request.
    assert_eq!(lengths, [2, 4, 6, 8, 6, 8, 6, 8, 6]);
    let said = |message: &Value| message["content"].to_string();
    for (n, messages) in asked.iter().enumerate() {
        let words: Vec<_> = messages.iter().map(said).collect();
        assert!(words[0].contains("You read a book.") && words[1].contains("Read six pages."), "{n}: {words:?}");
        let earlier = &asked[n.saturating_sub(1)];
        let is_compacted = messages.len() < earlier.len();
        assert!(is_compacted || messages.starts_with(earlier), "{n}: {words:?}");
    }
    let last: Vec<_> = asked.iter().map(|messages| messages.last().map(said).unwrap()).collect();
    for (n, words) in
        ["six pages", "Page 1:", "Page 2:", "Page 3:", "Page 4:", "Page 5:", "Page 6:", "one more", "Page 7:"]
            .into_iter()
            .enumerate()
    {
        assert!(last[n].contains(words), "{n}: {}", last[n]);
    }
}
