//! Lists and events, cut anywhere and written again.

use super::*;

fn split(parts: &[&[u8]]) -> Vec<Piece> {
    let mut splitter = Framing::default();
    let mut pieces: Vec<Piece> = Vec::new();
    for part in parts {
        pieces.extend(splitter.feed(part).unwrap());
    }
    pieces.extend(splitter.rest());
    // What belongs to no chunk may come in more pieces than one.
    let mut joined: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (joined.last_mut(), piece) {
            (Some(Piece::Other(last)), Piece::Other(more)) => last.extend(more),
            (_, Piece::Other(nothing)) if nothing.is_empty() => {}
            (_, piece) => joined.push(piece),
        }
    }
    joined
}

fn bytes(pieces: &[Piece]) -> Vec<u8> {
    let of = |piece: &Piece| match piece {
        Piece::Chunk { before, bytes, .. } => [&before[..], bytes].concat(),
        Piece::Close(bytes) | Piece::Other(bytes) => bytes.clone(),
    };
    pieces.iter().flat_map(of).collect()
}

#[test]
fn pieces_are_the_same_wherever_the_bytes_are_cut_and_no_byte_is_lost() {
    let list: &[u8] = b" [{\"a\": \"}{\\\"\\\\\"}\r\n,\r\n{\"b\": [{\"c\": {}}]}\n]\n";
    let events: &[u8] = b"\r\ndata: {\"a\": 1}\r\n\r\ndata: [DONE]\n\n";
    for (whole, count) in [(list, 5), (events, 3)] {
        let expected = split(&[whole]);
        assert_eq!((expected.len(), bytes(&expected)), (count, whole.to_vec()));
        for cut in 0..whole.len() {
            assert_eq!(split(&[&whole[..cut], &whole[cut..]]), expected, "cut at {cut}");
        }
        assert_eq!(split(&whole.chunks(1).collect::<Vec<_>>()), expected);
    }
}

#[test]
fn what_is_no_list_of_objects_is_passed_on_as_it_is() {
    for odd in [&b"[1, {\"a\": 1}]"[..], b"[[{}]]", b"[\"a\"", b"[]x", b"[{}}]"] {
        assert_eq!(bytes(&split(&[odd])), odd, "{}", String::from_utf8_lossy(odd));
    }
}

#[test]
fn half_an_item_at_the_end_is_dropped_and_half_an_event_is_known() {
    assert_eq!(bytes(&split(&[b"[{\"a\": 1},\n{\"b\": "])), b"[{\"a\": 1}");
    let halves = |bytes| split(&[bytes]).iter().filter(|piece| Framing::half(piece).is_some()).count();
    assert_eq!(halves(b"data: {\"a\": 1}\n\ndata: {\"b\": "), 1);
    for whole in [&b"data: {\"a\": 1}"[..], b"{\"error\": 1}"] {
        assert_eq!((bytes(&split(&[whole])), halves(whole)), (whole.to_vec(), 0));
    }
}

#[test]
fn an_item_without_end_is_refused_before_it_fills_the_memory() {
    let mut splitter = Framing::default();
    splitter.feed(b"[{\"a\": \"").unwrap();
    let block = vec![b'x'; 1024 * 1024];
    let refused = (0..20).find_map(|_| splitter.feed(&block).err());
    assert_eq!(refused, Some(StreamError::TooLarge { limit: EVENT_LIMIT_BYTES }));
}

fn check_list(write: impl Fn(&mut Writer, &mut Vec<u8>), expected: &str) {
    let mut writer = Writer { is_list: true, ..Writer::default() };
    let mut out = Vec::new();
    write(&mut writer, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_list_stays_one_whatever_is_left_out_of_it() {
    check_list(
        |writer, out| {
            writer.pass(b"[", b"{}", out);
            writer.pass(b"\n,\n", b"{}", out);
            writer.close(b" ]", out);
            writer.close(b" ]", out);
        },
        "[{}\n,\n{} ]",
    );
    check_list(
        |writer, out| {
            writer.pass(b",\r\n", b"{}", out);
            writer.write(b"[", &serde_json::json!({}), out);
            writer.close(b"[]", out);
        },
        "[{},\r\n{}\n]",
    );
    check_list(|writer, out| writer.close(b"[ ]", out), "[ ]");
    check_list(|writer, out| writer.close(b",]", out), "[]");
}
