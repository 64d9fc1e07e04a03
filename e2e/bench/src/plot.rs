//! Times over sizes as a drawing, both on scales where each step is ten times the one before. Knows nothing of what is
//! drawn.

use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 40.0;
/// Dashes that distinguish the lines for readers who see no colors.
const STYLES: [(&str, &str); 2] = [("#b45309", "none"), ("#1d4ed8", "6 3")];

/// One line.
pub(crate) struct Series<'a> {
    pub(crate) name: &'a str,
    pub(crate) points: &'a [(f64, f64)],
}

/// The place of a number between two powers of ten.
struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Scale {
    /// From the power of ten below all numbers to the one above them.
    fn over(numbers: impl Iterator<Item = f64> + Clone, start: f64, end: f64) -> Self {
        let from = numbers.clone().fold(f64::INFINITY, f64::min).log10().floor();
        let to = numbers.fold(f64::NEG_INFINITY, f64::max).log10().ceil().max(from + 1.0);
        Self { from, to, start, end }
    }

    fn place(&self, number: f64) -> f64 {
        let part = (number.log10() - self.from) / (self.to - self.from);
        self.start + part * (self.end - self.start)
    }

    fn steps(&self) -> impl Iterator<Item = f64> {
        let (from, to) = (self.from, self.to);
        std::iter::successors(Some(from), |power| Some(power + 1.0))
            .take_while(move |power| *power <= to)
            .map(|power| 10_f64.powf(power))
    }
}

/// The drawing as SVG.
pub(crate) fn svg(title: &str, series: &[Series<'_>]) -> String {
    let points = || series.iter().flat_map(|series| series.points.iter().copied());
    let x = Scale::over(points().map(|(x, _)| x), LEFT, WIDTH - RIGHT);
    let y = Scale::over(points().map(|(_, y)| y), HEIGHT - BOTTOM, TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"14\">{title}</text>\n"
    );
    for step in x.steps() {
        let at = x.place(step);
        line(&mut svg, (at, y.start), (at, y.end), "stroke=\"#ddd\"");
        text(&mut svg, (at, y.start + 18.0), "text-anchor=\"middle\"", &step.to_string());
    }
    for step in y.steps() {
        let at = y.place(step);
        line(&mut svg, (x.start, at), (x.end, at), "stroke=\"#ddd\"");
        text(&mut svg, (x.start - 6.0, at + 4.0), "text-anchor=\"end\"", &step.to_string());
    }
    for (number, (Series { name, points }, (colour, dashes))) in (0_u8..).zip(series.iter().zip(STYLES)) {
        let stroke = format!("stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"");
        let places: Vec<String> = points
            .iter()
            .map(|(size, time)| format!("{:.1},{:.1}", x.place(*size), y.place(*time)))
            .collect();
        // Writing to a String cannot fail.
        writeln!(svg, "<polyline fill=\"none\" {stroke} points=\"{}\"/>", places.join(" ")).ok();
        let beside = LEFT + f64::from(number) * 280.0;
        line(&mut svg, (beside, 34.0), (beside + 30.0, 34.0), &stroke);
        text(&mut svg, (beside + 36.0, 38.0), "", name);
    }
    svg + "</svg>\n"
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), style: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    writeln!(svg, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>").ok();
}

fn text(svg: &mut String, (x, y): (f64, f64), style: &str, words: &str) {
    writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{words}</text>").ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_of_a_scale_is_ten_times_the_one_before() {
        let scale = Scale::over([1_000.0, 30_000.0].into_iter(), 0.0, 100.0);
        let steps: Vec<String> = scale.steps().map(|step| step.to_string()).collect();
        assert_eq!(steps, ["1000", "10000", "100000"]);
        for (number, place) in [(1_000.0, 0.0), (10_000.0, 50.0), (100_000.0, 100.0)] {
            assert!((scale.place(number) - place).abs() < 0.001);
        }
    }

    #[test]
    fn every_series_is_a_line_with_its_name() {
        let series = |name| Series { name, points: &[(10.0, 1.0), (100.0, 5.0)] };
        let svg = svg("a title", &[series("one"), series("two")]);
        assert_eq!(svg.matches("<polyline").count(), 2);
        for text in ["a title", ">one<", ">two<", ">100<"] {
            assert!(svg.contains(text), "{text} is not in\n{svg}");
        }
    }
}
