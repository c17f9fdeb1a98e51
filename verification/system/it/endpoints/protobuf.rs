//! Objects, lists, options and watches in protobuf.

use super::encodings::chunk;
use super::*;

#[tokio::test]
async fn protobuf_is_read_and_written() {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    let fixture = Fixture::start(true).await;
    let ask = async |method, path: &str, accept: &str, body: Vec<u8>| {
        let answer = fixture.ask(in_protobuf(method, path, accept, body)).await;
        let media_type = answer.head.headers[CONTENT_TYPE].clone();
        (answer, media_type)
    };
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"},
        "data": {"k": "v"}});
    let body = codec::encode_value(&object).expect("a known kind");
    let (created, media_type) = ask("POST", CONFIG_MAPS, PROTOBUF, body.clone()).await;
    assert_eq!(
        (created.head.status.as_u16(), media_type),
        (201, PROTOBUF.parse().expect("a header"))
    );
    let created = codec::decode(&created.body, ("", "")).expect("an object");
    assert_eq!(
        created,
        fixture.get(&format!("{CONFIG_MAPS}/a")).await.json()
    );

    let (list, _) = ask("GET", CONFIG_MAPS, PROTOBUF, Vec::new()).await;
    let list = codec::decode(&list.body, ("", "")).expect("a list");
    assert_eq!(list["kind"], "ConfigMapList");
    assert_eq!(list["items"][0]["metadata"], created["metadata"]);

    let partial = format!("{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
    let (list, _) = ask("GET", CONFIG_MAPS, &partial, Vec::new()).await;
    let list = codec::decode(&list.body, ("", "")).expect("a list");
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["metadata"]["name"], "a");

    let both = format!("{PROTOBUF},application/json");
    let (again, _) = ask("POST", CONFIG_MAPS, &both, body.clone()).await;
    let again = codec::decode(&again.body, ("", "")).expect("a Status");
    assert_eq!(again["reason"], "AlreadyExists");
    let (cut, _) = ask("POST", CONFIG_MAPS, "*/*", body[..body.len() - 9].to_vec()).await;
    let (code, message) = cut.failure();
    assert_eq!(code, 400);
    assert!(
        message.contains("(must be of type ConfigMap): unexpected EOF (6b387300"),
        "{message}"
    );

    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1",
        "preconditions": {"uid": "another"}});
    let options = codec::encode_value(&options).expect("a known kind");
    let path = format!("{CONFIG_MAPS}/a");
    let (refused, _) = ask("DELETE", &path, "application/json", options).await;
    assert_eq!(refused.failure().0, 409);
}

#[tokio::test]
async fn watches_come_in_protobuf() {
    const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";
    let fixture = Fixture::start(true).await;
    let created = fixture.config_map("a", json!({"k": "v"})).await;
    let query = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true\
                 &resourceVersionMatch=NotOlderThan";
    let path = format!("{CONFIG_MAPS}?{query}");
    let answer = fixture.send(in_protobuf("GET", &path, STREAM, Vec::new()));
    let (head, mut body) = answer.await.into_parts();
    assert_eq!(head.headers[CONTENT_TYPE], STREAM);
    let mut bytes = Vec::new();
    let mut events = Vec::new();
    while events.len() < 2 || !bytes.is_empty() {
        let message = bytes.split_first_chunk::<4>();
        let message = message
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_be_bytes(*length) as usize));
        let Some((event, rest)) = message else {
            bytes.extend(chunk(&mut body).await);
            continue;
        };
        let (event, rest) = (event.to_vec(), rest.to_vec());
        bytes = rest;
        let untyped = [
            &codec::MAGIC[..],
            &[0x12, event.len() as u8, (event.len() >> 7) as u8],
        ];
        // The length of the envelope's content is a varint of two bytes.
        let mut envelope = untyped.concat();
        envelope[5] |= 0x80;
        envelope.extend_from_slice(&event);
        let event = codec::decode(&envelope, ("v1", "WatchEvent")).expect("an event");
        events.push(event);
    }
    assert_eq!(events[0]["type"], "ADDED");
    assert_eq!(events[0]["object"], created);
    assert_eq!(events[1]["type"], "BOOKMARK");
    assert_eq!(events[1]["object"]["kind"], "ConfigMap");
    assert_eq!(events.len(), 2);
}
