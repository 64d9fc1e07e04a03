//! Suggestions for a mistyped name.

/// Largest number of suggestions.
const MOST: usize = 3;

/// Returns the names most similar to `wanted`, the most similar first; empty if none is similar.
pub(crate) fn suggest(wanted: &str, names: &[String]) -> Vec<String> {
    // A third of the letters may differ; in a short name one.
    let most_edits = (wanted.chars().count() / 3).max(1);
    let mut similar: Vec<(usize, &String)> = names
        .iter()
        .filter_map(|name| {
            let edits = distance(wanted, name);
            let is_part = wanted.len() >= 3 && (name.contains(wanted) || wanted.contains(name.as_str()));
            (edits <= most_edits || is_part).then_some((edits, name))
        })
        .collect();
    similar.sort();
    similar.into_iter().take(MOST).map(|(_, name)| name.clone()).collect()
}

/// Edit distance: letters to change, add, remove, or swap with their neighbor.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: &str, expected: &[&str]) {
        let names: Vec<String> =
            ["word-count", "word-list", "csv-stats", "json-query", "cat", "upper-case", "upper-case-all"]
                .map(String::from)
                .to_vec();
        assert_eq!(suggest(wanted, &names), expected, "{wanted}");
    }

    #[test]
    fn names_with_typos_are_suggested() {
        check("wrod-count", &["word-count"]);
        check("wordcount", &["word-count"]);
        check("csv-stat", &["csv-stats"]);
        check("cta", &["cat"]);
    }

    #[test]
    fn a_part_of_a_name_finds_it_and_the_nearest_comes_first() {
        check("upper-case", &["upper-case", "upper-case-all"]);
        check("query", &["json-query"]);
    }

    #[test]
    fn dissimilar_names_are_not_suggested() {
        check("translate-to-german", &[]);
        check("dog", &[]);
    }

    #[test]
    fn swapped_neighbours_are_one_step() {
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
