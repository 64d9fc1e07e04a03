//! The real resolver before a name server on loopback.

use std::sync::{Arc, Mutex};

use hickory_resolver::{
    config::{NameServerConfig, ResolverConfig},
    net::runtime::TokioRuntimeProvider,
    proto::{
        op::{Message, OpCode, ResponseCode},
        rr::{RData, Record, RecordType, rdata::CNAME},
    },
};
use skillet_protocol::Verdict;
use tokio::net::UdpSocket;

use super::*;
use crate::{limits::lock, policy::Policy, testing::policy};

/// Names that the server was asked for.
type Asked = Arc<Mutex<Vec<String>>>;

/// Returns a resolver whose one server knows a few names.
async fn resolver() -> (SystemResolver, Asked) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut server = NameServerConfig::udp("127.0.0.1".parse().unwrap());
    server.connections[0].port = socket.local_addr().unwrap().port();
    let search = vec![Name::from_ascii("svc.cluster.local.").unwrap()];
    let config = ResolverConfig::from_parts(None, search, vec![server]);
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    bound(builder.options_mut());
    let asked = Asked::default();
    tokio::spawn(serve(socket, Arc::clone(&asked)));
    (SystemResolver(builder.build().unwrap()), asked)
}

async fn serve(socket: UdpSocket, asked: Asked) {
    let mut buffer = [0; 1500];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        let question = Message::from_vec(&buffer[..length]).unwrap();
        let query = question.queries[0].clone();
        let name = query.name().to_ascii().to_lowercase();
        lock(&asked).push(format!("{name} {}", query.query_type()));
        let mut answer = Message::response(question.metadata.id, OpCode::Query);
        answer.queries.push(query.clone());
        let a = |name: &str, address: &str| {
            Record::from_rdata(Name::from_ascii(name).unwrap(), 60, RData::A(address.parse().unwrap()))
        };
        let cname = |name: &str, target: &str| {
            let target = CNAME(Name::from_ascii(target).unwrap());
            Record::from_rdata(Name::from_ascii(name).unwrap(), 60, RData::CNAME(target))
        };
        match (name.as_str(), query.query_type()) {
            ("public.example.", RecordType::A) => {
                answer.add_answer(a(&name, "93.184.216.34"));
            }
            ("alias.example.", RecordType::A) => {
                answer.add_answer(cname(&name, "inside.example."));
                answer.add_answer(a("inside.example.", "10.0.0.1"));
            }
            ("public.example." | "alias.example.", _) => {}
            ("broken.example.", _) => answer.metadata.response_code = ResponseCode::ServFail,
            _ => answer.metadata.response_code = ResponseCode::NXDomain,
        }
        socket.send_to(&answer.to_vec().unwrap(), from).await.unwrap();
    }
}

fn host(name: &str) -> HostName {
    HostName::parse(name).unwrap()
}

#[tokio::test]
async fn a_name_is_looked_up_as_it_is_and_kept() {
    let (resolver, asked) = resolver().await;
    let expected: Vec<IpAddr> = vec!["93.184.216.34".parse().unwrap()];
    for _ in 0..3 {
        assert_eq!(resolver.resolve(&host("public.example")).await, Ok(expected.clone()));
    }
    let questions = lock(&asked).clone();
    let of_v4 = questions.iter().filter(|question| *question == "public.example. A");
    assert_eq!(of_v4.count(), 1, "{questions:?}");
    for name in ["kubernetes", "none.example"] {
        assert_eq!(resolver.resolve(&host(name)).await, Err(ResolveError::NotFound));
    }
    let questions = lock(&asked).clone();
    assert!(questions.iter().all(|name| !name.contains("cluster.local")), "{questions:?}");
    assert!(matches!(resolver.resolve(&host("broken.example")).await, Err(ResolveError::Failed(_))));
}

#[tokio::test]
async fn an_alias_of_a_name_inside_is_refused_by_its_address() {
    let (resolver, _) = resolver().await;
    let addresses = resolver.resolve(&host("alias.example")).await.unwrap();
    let policy = Policy::new(&policy(&[("alias.example", &[443])])).unwrap();
    assert_eq!(policy.check_addresses(&host("alias.example"), 443, &addresses), Err(Some(addresses[0])));
    assert_eq!(policy.check_host("inside.example", 443), Err(Verdict::HostNotAllowed));
}

#[tokio::test]
async fn names_of_this_machine_are_never_allowed() {
    let (resolver, _) = resolver().await;
    let policy = Policy::new(&policy(&[("localhost", &[80])])).unwrap();
    if let Ok(addresses) = resolver.resolve(&host("localhost")).await {
        assert!(policy.check_addresses(&host("localhost"), 80, &addresses).is_err(), "{addresses:?}");
    }
}
