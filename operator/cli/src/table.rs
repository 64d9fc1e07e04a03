//! Tables like kubectl's: columns aligned by blanks, three apart.

/// A header, and rows of the same number of cells.
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

const GAP: usize = 3;

impl Table {
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; an empty cell is shown as `-`.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = String>) {
        let cells = row.into_iter().map(|cell| if cell.is_empty() { "-".to_owned() } else { cell });
        self.rows.push(cells.collect());
    }

    /// Renders the lines, without trailing blanks.
    pub(crate) fn render(&self) -> String {
        self.render_after(&mut Widths::default())
    }

    /// Renders the lines below those that were rendered with `widths` before, if any; then without the header.
    pub(crate) fn render_after(&self, widths: &mut Widths) -> String {
        let header: Vec<String> = self.header.iter().map(ToString::to_string).collect();
        let is_first = widths.0.is_empty();
        widths.0.resize(header.len(), 0);
        for row in [&header].into_iter().chain(&self.rows) {
            for (width, cell) in widths.0.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let header = is_first.then_some(&header);
        header.into_iter().chain(&self.rows).map(|row| line(row, &widths.0)).collect()
    }
}

/// Widths of the columns so far.
#[derive(Default)]
pub(crate) struct Widths(Vec<usize>);

fn line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in row.iter().zip(widths) {
        line.push_str(cell);
        line.push_str(&" ".repeat(width + GAP - cell.chars().count()));
    }
    line.truncate(line.trim_end().len());
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_an_empty_cell_is_a_dash() {
        let mut table = Table::new(&["NAME", "AGE", "NOTE"]);
        table.push(["word-count".into(), "5s".into(), String::new()]);
        table.push(["ü".into(), "10m".into(), "new".into()]);
        let mut widths = Widths::default();
        table.render_after(&mut widths);
        let mut later = Table::new(&["NAME", "AGE", "NOTE"]);
        later.push(["b".into(), "1s".into(), "changed".into()]);
        assert_eq!(later.render_after(&mut widths), "b            1s    changed\n");
        assert_eq!(table.render(), "NAME         AGE   NOTE\nword-count   5s    -\nü            10m   new\n");
    }
}
