//! `kubectl skill connections`: lists the connections that a run asked for, refused ones included.

use skillet_api::{
    SkillExecutionStatus, Verdict,
    network::{Connection, Connections},
};

use crate::{
    arguments::{ClusterArgs, ConnectionsArgs},
    connection::{ClusterClient, connect},
    console::{self, Console, printable},
    error::CliError,
    exit::Exit,
    humanize,
    result::has_ended,
    table::Table,
};

/// Every reason why a run has no record.
const NO_RECORD: &str = "\
The run has no record of connections. Its skill may reach no host (spec.network of its version is not set), \
the run ended before its program started or its request was sent, its output was kept from an earlier run, \
or the operator that had its record is gone.
";

pub(crate) async fn run(
    cluster: &ClusterArgs,
    args: &ConnectionsArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let ClusterClient { client, namespace } = connect(cluster).await?;
    let ConnectionsArgs { name, output } = args;
    let execution = name.read(&client, &namespace).await?;
    if !has_ended(&execution) {
        return Err(CliError::NotEnded { namespace, name: name.to_string() });
    }
    let status = execution.status.unwrap_or_default();
    let connections = status.connections.clone().unwrap_or_default();
    console.print(&output.render(&connections, || table(&connections))?)?;
    if let Some(note) = note(&status) {
        console::explain(&note);
    }
    Ok(Exit::Done)
}

fn table(connections: &Connections) -> String {
    if connections.list.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["HOST", "PORT", "ADDRESS", "VERDICT", "SENT", "RECEIVED", "TIME"]);
    for connection in &connections.list {
        let Connection {
            host, port, address, verdict, sent_bytes, received_bytes, duration_ms, repeats, ..
        } = connection;
        let times = repeats.map(|repeats| format!(" ({} times)", repeats + 1)).unwrap_or_default();
        let of_allowed = |bytes: u64| match verdict {
            Verdict::Allowed => humanize::bytes(bytes),
            _ => String::new(),
        };
        table.push([
            printable(host),
            if *port == 0 { String::new() } else { port.to_string() },
            address.as_deref().map(printable).unwrap_or_default(),
            format!("{}{times}", verdict.as_str()),
            of_allowed(*sent_bytes),
            of_allowed(*received_bytes),
            duration_ms.map(humanize::duration).unwrap_or_default(),
        ]);
    }
    table.render()
}

/// Returns what the list does not show.
fn note(status: &SkillExecutionStatus) -> Option<String> {
    let Some(connections) = &status.connections else {
        return Some(NO_RECORD.to_owned());
    };
    let Connections { allowed, refused, sent_bytes, received_bytes, list } = connections;
    if *allowed == 0 && *refused == 0 {
        return Some("The run asked for no connection.\n".to_owned());
    }
    let listed: u32 = list.iter().map(|connection| connection.repeats.unwrap_or(0) + 1).sum();
    (listed < allowed.saturating_add(*refused)).then(|| {
        format!(
            "Only the first {} are kept, of {allowed} allowed and {refused} refused; in all {} were sent and {} received.\n",
            list.len(),
            humanize::bytes(*sent_bytes),
            humanize::bytes(*received_bytes)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(yaml: &str) -> SkillExecutionStatus {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn connections_are_a_table_with_verdicts() {
        let status = status(
            "{connections: {allowed: 1, refused: 3, list: [
               {host: api.example.com, port: 443, address: 203.0.113.7, verdict: Allowed, sentBytes: 517, receivedBytes: 20480, durationMs: 1200},
               {host: evil.example, verdict: HostNotAllowed, repeats: 2, durationMs: 0}]}}",
        );
        let lines = [
            "HOST              PORT   ADDRESS       VERDICT                    SENT    RECEIVED   TIME",
            "api.example.com   443    203.0.113.7   Allowed                    517 B   20.0 KiB   1.2s",
            "evil.example      -      -             HostNotAllowed (3 times)   -       -          0ms",
        ];
        assert_eq!(table(status.connections.as_ref().unwrap()), lines.join("\n") + "\n");
        assert_eq!(note(&status), None);
    }

    #[test]
    fn what_the_list_does_not_show_is_said() {
        let none = note(&status("{}")).unwrap();
        for reason in
            ["may reach no host", "ended before its program", "kept from an earlier run", "operator"]
        {
            assert!(none.contains(reason), "{none}");
        }
        assert!(note(&status("{connections: {}}")).unwrap().contains("asked for no connection"));
        let many = "{connections: {allowed: 80, refused: 2, sentBytes: 2048, list: [{host: a.b, port: 443, verdict: Allowed}]}}";
        assert_eq!(
            note(&status(many)).unwrap(),
            "Only the first 1 are kept, of 80 allowed and 2 refused; in all 2.0 KiB were sent and 0 B received.\n"
        );
    }
}
