//! Decides about the operator's orders, without I/O.
//!
//! # Guarantees
//!
//! - A sandbox accepts one run, once, and only after a `Hello`.
//! - It refuses a run of an epoch smaller than one it has seen, so an operator that was replaced starts nothing.
//! - A refused run leaves the sandbox free for the next one. A cancel is always obeyed.
//!
//! Several operators may be attached. The handshake knows their orders, but not who sent them or how a run ended.

use skillet_protocol::{NetworkResponse, OperatorMessage, RefusalReason, Refused, Run};

#[derive(Debug, Default)]
pub(crate) struct Handshake {
    epoch: Option<u64>,
    accepted: bool,
    /// Programs have named egress.
    has_egress: bool,
}

/// The runner's reaction to an order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Respond with the self-test.
    Greet,
    Accept(Box<Run>),
    Refuse(Refused),
    /// Stop the program; without a program, end unused.
    Cancel,
    /// More standard input for the program.
    Input(Vec<u8>),
    /// An answer to a connection of the program.
    Network(NetworkResponse),
    Ignore,
}

impl Handshake {
    pub(crate) fn new(has_egress: bool) -> Self {
        Self { has_egress, ..Self::default() }
    }

    pub(crate) fn judge(&mut self, order: OperatorMessage) -> Reaction {
        match order {
            OperatorMessage::Hello(hello) => {
                self.epoch = Some(self.epoch.map_or(hello.epoch, |epoch| epoch.max(hello.epoch)));
                // Inside a run's stream another Ready would be out of order.
                if self.accepted { Reaction::Ignore } else { Reaction::Greet }
            }
            OperatorMessage::Run(run) => self.judge_run(run),
            OperatorMessage::Cancel => Reaction::Cancel,
            OperatorMessage::Input(bytes) => Reaction::Input(bytes),
            OperatorMessage::Network(response) => Reaction::Network(response),
        }
    }

    fn judge_run(&mut self, run: Box<Run>) -> Reaction {
        if self.accepted {
            return refuse(
                Some(run.epoch),
                RefusalReason::AlreadyAccepted,
                "this sandbox has accepted its one run",
            );
        }
        let Some(epoch) = self.epoch else {
            return refuse(Some(run.epoch), RefusalReason::NoHello, "a run came before any hello");
        };
        if run.epoch < epoch {
            return refuse(
                Some(run.epoch),
                RefusalReason::StaleEpoch,
                &format!("epoch {} is smaller than {epoch}, which was seen before", run.epoch),
            );
        }
        if let Err(invalid) = run.check() {
            return refuse(Some(run.epoch), RefusalReason::InvalidRun, &invalid.to_string());
        }
        if run.network.is_some() && !self.has_egress {
            return refuse(
                Some(run.epoch),
                RefusalReason::InvalidRun,
                "the run names hosts, and this sandbox has no named egress",
            );
        }
        self.epoch = Some(run.epoch);
        self.accepted = true;
        Reaction::Accept(run)
    }
}

pub(crate) fn refuse(epoch: Option<u64>, reason: RefusalReason, message: &str) -> Reaction {
    Reaction::Refuse(Refused { epoch, reason, message: message.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use skillet_protocol::Hello;

    fn hello(epoch: u64) -> OperatorMessage {
        OperatorMessage::Hello(Hello { epoch })
    }

    fn run(epoch: u64) -> OperatorMessage {
        let mut run: Run = serde_json::from_str(
            r#"{"executionUid":"u","attempt":1,"epoch":0,"program":{"command":{"argv":["true"]}},"input":"",
                "limits":{"timeoutMs":1,"graceMs":0,"processes":1,"outputBytes":0,"fileBytes":0,"openFiles":9}}"#,
        )
        .unwrap();
        run.epoch = epoch;
        OperatorMessage::Run(Box::new(run))
    }

    fn check(orders: Vec<OperatorMessage>, expected: &str) {
        check_in(Handshake::default(), orders, expected);
    }

    fn check_in(mut handshake: Handshake, orders: Vec<OperatorMessage>, expected: &str) {
        let reactions: Vec<_> = orders
            .into_iter()
            .map(|order| match handshake.judge(order) {
                Reaction::Refuse(refused) => {
                    format!("{:?} of {}", refused.reason, refused.epoch.unwrap_or_default())
                }
                Reaction::Accept(_) => "Accept".to_owned(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(reactions.join(" "), expected);
    }

    #[test]
    fn one_run_is_accepted_after_a_hello() {
        check(vec![run(1)], "NoHello of 1");
        check(vec![hello(1), run(1)], "Greet Accept");
        check(
            vec![hello(1), run(1), run(1), run(2)],
            "Greet Accept AlreadyAccepted of 1 AlreadyAccepted of 2",
        );
        check(vec![run(1), hello(1), run(1)], "NoHello of 1 Greet Accept");
    }

    #[test]
    fn an_older_leader_is_refused_and_a_newer_one_is_not() {
        check(vec![hello(5), run(4)], "Greet StaleEpoch of 4");
        check(vec![hello(5), run(6)], "Greet Accept");
        check(vec![hello(4), hello(5), run(4), run(5)], "Greet Greet StaleEpoch of 4 Accept");
        check(vec![hello(5), hello(4), run(4)], "Greet Greet StaleEpoch of 4");
    }

    #[test]
    fn an_impossible_run_is_refused_and_leaves_the_sandbox_free() {
        let OperatorMessage::Run(mut impossible) = run(1) else { unreachable!() };
        impossible.execution_uid.clear();
        check(vec![hello(1), OperatorMessage::Run(impossible), run(1)], "Greet InvalidRun of 1 Accept");
    }

    #[test]
    fn a_run_with_hosts_needs_a_sandbox_with_named_egress() {
        let with_hosts = || {
            let OperatorMessage::Run(mut run) = run(1) else { unreachable!() };
            run.network = Some(skillet_protocol::RunNetwork::default());
            OperatorMessage::Run(run)
        };
        check(vec![hello(1), with_hosts(), run(1)], "Greet InvalidRun of 1 Accept");
        check_in(Handshake::new(true), vec![hello(1), with_hosts()], "Greet Accept");
        check_in(Handshake::new(true), vec![hello(1), run(1)], "Greet Accept");
    }

    #[test]
    fn cancel_is_always_obeyed_and_a_late_hello_is_ignored() {
        check(vec![OperatorMessage::Cancel], "Cancel");
        check(vec![hello(1), run(1), OperatorMessage::Cancel, hello(2)], "Greet Accept Cancel Ignore");
    }
}
