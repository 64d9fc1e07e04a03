//! Notices of another list.

use rmcp::model::SubscriptionFilter;
use serde_json::json;

use super::*;

/// Changes something until the client is notified: its stream of notifications may not be open yet.
async fn notified(client: &Client, mut change: impl FnMut(u32)) {
    let before = *client.seen.list_changed.borrow();
    let mut round = 0;
    until(|| {
        round += 1;
        change(round);
        *client.seen.list_changed.borrow() > before
    })
    .await;
}

#[tokio::test]
async fn an_open_session_is_notified_when_its_list_changes() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "sum", &json!({}));
    let client = server.client("a/agent").await;
    notified(&client, |round| {
        server.gateway.skill("a", "sum", &json!({ "version": format!("1.0.{round}") }));
    })
    .await;
    notified(&client, |round| server.gateway.skill("a", &format!("new-{round}"), &json!({}))).await;
}

#[tokio::test]
async fn a_session_is_not_notified_of_what_it_does_not_see() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "manual", &json!({ "invocation": "manual" }));
    let (of_a, of_b) = (server.client("a/agent").await, server.client("b/agent").await);
    notified(&of_b, |round| {
        server.gateway.skill("b", &format!("new-{round}"), &json!({}));
        server.gateway.skill(
            "a",
            "manual",
            &json!({ "invocation": "manual", "version": format!("1.0.{round}") }),
        );
    })
    .await;
    // Later than all of the above, and sent on the same stream.
    let unseen = *of_a.seen.list_changed.borrow();
    assert_eq!(unseen, 0);
    notified(&of_a, |_| server.gateway.skill("a", "sum", &json!({}))).await;
    assert_eq!(*of_a.seen.list_changed.borrow(), 1);
}

#[tokio::test]
async fn a_change_is_looked_at_where_it_is_seen_and_once_for_all_who_see_the_same() {
    let server = McpServer::start().await;
    server.gateway.skill("a", "sum", &json!({}));
    let (mut of_a, of_b) = (Vec::new(), server.client("b/agent").await);
    for _ in 0..4 {
        of_a.push(server.client("a/agent").await);
    }
    // With the streams of notices open.
    for client in &of_a {
        notified(client, |round| server.gateway.skill("a", &format!("early-{round}"), &json!({}))).await;
    }
    // What came of the above has passed, and each has a notification of the last state.
    let last = of_a.last().unwrap();
    notified(last, |round| server.gateway.skill("a", &format!("early-{round}-{round}"), &json!({}))).await;
    let looks = ["a", "b"].map(|namespace| server.lists(namespace));
    let mut changes = 0;
    notified(&of_b, |round| {
        changes = round as usize;
        server.gateway.skill("b", &format!("new-{round}"), &json!({}));
    })
    .await;
    assert!(server.lists("b") > looks[1], "who sees the change looks at it");
    // Of all the changes of `a` so far at most the last may not have been looked at then.
    assert!(
        server.lists("a") <= looks[0] + 1,
        "{} after {changes} changes of b",
        server.lists("a") - looks[0]
    );
    let looks = server.lists("a");
    server.gateway.skill("a", "late", &json!({}));
    let before: Vec<u32> = of_a.iter().map(|client| *client.seen.list_changed.borrow()).collect();
    until(|| of_a.iter().zip(&before).all(|(client, before)| *client.seen.list_changed.borrow() > *before))
        .await;
    assert!(server.lists("a") <= looks + 2, "four sessions, one look and at most one of a change before");
}

#[tokio::test]
async fn a_client_without_sessions_listens() {
    let server = McpServer::start().await;
    let client = server.client_of("a/agent", without_sessions()).await;
    let filter = SubscriptionFilter::builder().tools_list_changed().prompts_list_changed().build();
    let mut subscription = client.service.listen(filter).await.unwrap();
    let (gateway, done) = (server.gateway.clone(), CancellationToken::new());
    let changing = done.clone();
    let changes = tokio::spawn(async move {
        let mut round = 0;
        until(|| {
            round += 1;
            gateway.skill("a", &format!("new-{round}"), &json!({}));
            changing.is_cancelled()
        })
        .await;
    });
    let notice = tokio::time::timeout(LIMIT, subscription.next()).await.expect("a notice");
    assert!(notice.unwrap().is_some());
    done.cancel();
    changes.await.unwrap();
    // The gateway stops, and the client is let go.
    server.stop.cancel();
    let end = async { while subscription.next().await.unwrap().is_some() {} };
    tokio::time::timeout(LIMIT, end).await.expect("the end of the subscription");
}
