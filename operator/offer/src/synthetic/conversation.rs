//! A scripted conversation of 30 turns with an agent, the skills of its namespace, and what a change of the tools costs.

/// Names and descriptions of the skills.
pub const SKILLS: [(&str, &str); 12] = [
    ("invoice-create", "Creates an invoice for a customer and returns it as a PDF."),
    ("invoice-remind", "Sends a reminder to a customer about an invoice that is not paid."),
    ("weather-forecast", "Weather forecast of a city for the next days."),
    ("text-translate", "Translates a text into another language."),
    ("image-resize", "Resizes images and photos to a width and height."),
    ("pod-logs", "Shows the logs of a pod in the cluster."),
    ("deploy-service", "Deploys a service to the cluster from an image."),
    ("calendar-book", "Books a meeting in the calendar of a colleague."),
    ("stock-price", "Price of a stock on the market today."),
    ("table-chart", "Draws a chart from the rows of a table."),
    ("file-backup", "Makes a backup of files and folders."),
    ("route-plan", "Plans a route between two places on a map."),
];

/// One turn: the user's words, the file that the agent then reads, and its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedTurn {
    pub user: String,
    pub file: String,
    pub response: String,
}

/// Returns the turns. Each file has words of other skills than the turn, as files of a repository do.
pub fn turns() -> Vec<ScriptedTurn> {
    const TOPICS: [&str; 10] = [
        "Hi, I have a few things to do today",
        "Create an invoice for our customer Miller over 900 euros",
        "Please make the due date the end of the month",
        "What is the weather forecast for Rome?",
        "and the day after?",
        "Translate the text of the invoice into French",
        "thanks, that is good",
        "Show me the logs of the pod that failed",
        "Book a meeting with the team about it",
        "Draw a chart of the table in the report",
    ];
    (0..30)
        .map(|at| {
            let topic = TOPICS.get(at % TOPICS.len()).copied().unwrap_or_default();
            let (name, text) = SKILLS.get(at * 5 % SKILLS.len()).copied().unwrap_or_default();
            let line = format!("line of notes {at}: {text} See {name} in the handbook.\n");
            ScriptedTurn {
                user: format!("{topic} ({at})"),
                file: line.repeat(12),
                response: format!("Done with step {at}. The result is in the folder of the project."),
            }
        })
        .collect()
}

/// Returns the tokens that prompts send again without the provider's cache, at four bytes a token. A provider keeps the
/// longest prefix that a prompt has in common with the one before it; the rest of the one before is read again.
pub fn resent_tokens(prompts: &[String]) -> usize {
    let resent = |(before, now): (&String, &String)| {
        let common = before.bytes().zip(now.bytes()).take_while(|(a, b)| a == b).count();
        before.len() - common
    };
    prompts.iter().zip(prompts.iter().skip(1)).map(resent).sum::<usize>() / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_follows_a_change_is_sent_again() {
        let prompts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(resent_tokens(&prompts(&["tools aaaa", "tools aaaabbbb"])), 0);
        assert_eq!(resent_tokens(&prompts(&["tools 12345678", "tools+12345678", "tools+123456789"])), 9 / 4);
    }

    #[test]
    fn the_script_has_thirty_turns_that_differ() {
        let turns = turns();
        assert_eq!(turns.len(), 30);
        assert!(turns.iter().zip(turns.iter().skip(1)).all(|(a, b)| a.user != b.user && a.file != b.file));
    }
}
