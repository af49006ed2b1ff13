//! Charts as inline SVG: [`bar_chart`] and [`LineChart`]. Axes have round numbers and units; each chart has a title and a
//! description for screen readers.

use std::fmt::Write;
use std::ops::Range;

use super::html::{Table, chart_and_table, escape};
use crate::cli::terminal::thousands;

/// Width of all charts. A phone shows this many pixels, so that the text stays readable.
const WIDTH: f64 = 420.0;

/// Longest label of a bar, in characters.
const MAX_LABEL: usize = 18;

/// A bar: its label, its number, and the part of the number that is marked.
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) value: u64,
    pub(crate) part: u64,
}

impl Bar {
    pub(crate) fn new(label: impl Into<String>, value: u64) -> Bar {
        Bar { label: label.into(), value, part: 0 }
    }
}

/// The end of an axis for values up to `value`, and the distance of its ticks, which is 1, 2 or 5 times a power of ten.
fn axis(value: f64) -> (f64, f64) {
    let rough = value.max(1e-9) / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * 0.999_999).unwrap_or(10.0);
    let step = factor * power;
    ((value / step * 0.999_999).ceil().max(1.0) * step, step)
}

/// A number on an axis: short, with a suffix for large numbers.
fn tick(value: f64) -> String {
    let (value, suffix) = match value {
        value if value >= 1e9 => (value / 1e9, "G"),
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e4 => (value / 1e3, "k"),
        value => (value, ""),
    };
    let digits = if value.fract().abs() < 1e-6 {
        0
    } else if value < 0.1 {
        3
    } else {
        2
    };
    let text = format!("{value:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

/// The values of the ticks of an axis.
fn ticks(top: f64, step: f64) -> impl Iterator<Item = f64> {
    (0..=(top / step).round() as u32).map(move |i| f64::from(i) * step)
}

/// The beginning of a chart; `id` is unique on the page.
fn open(id: &str, height: f64, title: &str, description: &str) -> String {
    let (title, description) = (escape(title), escape(description));
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\">\n<title \
         id=\"{id}-title\">{title}</title><desc id=\"{id}-desc\">{description}</desc>\n"
    )
}

fn shorten(label: &str) -> String {
    let label = crate::cli::terminal::visible(label);
    match label.chars().count() {
        count if count <= MAX_LABEL => label.into_owned(),
        _ => label.chars().take(MAX_LABEL - 1).chain(['…']).collect(),
    }
}

/// Appends a tick of the horizontal axis, for `value` at `x`: a line over a range of heights, and the label at `label_y`.
fn push_tick(svg: &mut String, (value, x): (f64, f64), line: Range<f64>, label_y: f64) {
    let (y1, y2, label) = (line.start, line.end, tick(value));
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<line x1=\"{x:.1}\" y1=\"{y1}\" x2=\"{x:.1}\" y2=\"{y2}\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{label_y}\" \
         text-anchor=\"middle\">{label}</text>"
    );
}

/// Horizontal bars with their numbers, over an axis of `unit`. Where bars have marked parts, `unit` is followed by their
/// legend.
pub(crate) fn bar_chart(id: &str, title: &str, (unit, part_name): (&str, &str), bars: &[Bar]) -> String {
    const ROW: f64 = 24.0;
    const LEFT: f64 = 136.0;
    const RIGHT: f64 = WIDTH - 74.0;
    let most = bars.iter().map(|bar| bar.value).max().unwrap_or(0).max(1);
    let (top, step) = axis(most as f64);
    let x = |value: f64| LEFT + value / top * (RIGHT - LEFT);
    let bottom = bars.len() as f64 * ROW + 6.0;
    let description: Vec<_> =
        bars.iter().map(|bar| format!("{} {}", shorten(&bar.label), thousands(bar.value))).collect();
    let mut svg = open(id, bottom + 36.0, title, &format!("Bars, in {unit}: {}", description.join(", ")));
    for at in ticks(top, step).filter(|at| at.fract() == 0.0) {
        push_tick(&mut svg, (at, x(at)), 0.0..bottom, bottom + 14.0);
    }
    for (i, Bar { label, value, part }) in bars.iter().enumerate() {
        let y = i as f64 * ROW + 4.0;
        let (width, part_width) = (x(*value as f64) - LEFT, x(*part as f64) - LEFT);
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect class=\"bar\" x=\"{LEFT}\" y=\"{y}\" \
             width=\"{width:.1}\" height=\"17\"/><rect class=\"part\" x=\"{LEFT}\" y=\"{y}\" width=\"{part_width:.1}\" \
             height=\"17\"/><text x=\"{:.1}\" y=\"{}\">{}</text>",
            LEFT - 8.0,
            y + 13.0,
            escape(&shorten(label)),
            LEFT + width + 6.0,
            y + 13.0,
            thousands(*value)
        );
    }
    let y = bottom + 30.0;
    let _ = write!(svg, "<text class=\"unit\" x=\"{LEFT}\" y=\"{y}\">{}</text>", escape(unit));
    if !part_name.is_empty() {
        let (x, box_y) = (LEFT + 90.0, y - 9.0);
        let _ = write!(svg, "<rect class=\"part\" x=\"{x}\" y=\"{box_y}\" width=\"10\" height=\"10\"/>");
        let _ = write!(svg, "<text class=\"unit\" x=\"{}\" y=\"{y}\">{}</text>", x + 15.0, escape(part_name));
    }
    svg + "\n</svg>"
}

impl Table {
    /// The table next to a [`bar_chart`] with its caption as the title.
    pub(crate) fn with_bars(&self, id: &str, unit: (&str, &str), bars: &[Bar]) -> String {
        chart_and_table(&bar_chart(id, self.caption, unit, bars), self)
    }
}

/// A line over time.
pub(super) struct LineChart<'a> {
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    /// The unit of the values.
    pub(super) unit: &'a str,
    /// Seconds and values, in order.
    pub(super) points: &'a [(f64, f64)],
}

impl LineChart<'_> {
    pub(super) fn to_svg(&self) -> String {
        const LEFT: f64 = 56.0;
        const RIGHT: f64 = WIDTH - 14.0;
        const TOP: f64 = 24.0;
        const BOTTOM: f64 = 176.0;
        let most = |of: fn(&(f64, f64)) -> f64| self.points.iter().map(of).fold(0.0, f64::max);
        let (end, (top, step)) = (most(|point| point.0).max(1e-3), axis(most(|point| point.1)));
        let (_, x_step) = axis(end);
        let (x, y) = (|at: f64| LEFT + at / end * (RIGHT - LEFT), |value: f64| BOTTOM - value / top * (BOTTOM - TOP));
        let description = format!(
            "A line over {end:.2} seconds; the highest value is {} {}.",
            tick(most(|point| point.1)),
            self.unit
        );
        let mut svg = open(self.id, 216.0, self.title, &description);
        let _ = writeln!(svg, "<text class=\"unit\" x=\"4\" y=\"12\">{}</text>", escape(self.unit));
        for value in ticks(top, step) {
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" y1=\"{0:.1}\" x2=\"{RIGHT}\" y2=\"{0:.1}\"/><text class=\"tick\" x=\"{1}\" y=\"{2:.1}\" \
                 text-anchor=\"end\">{3}</text>",
                y(value),
                LEFT - 6.0,
                y(value) + 4.0,
                tick(value)
            );
        }
        for at in ticks((end / x_step).floor() * x_step, x_step) {
            push_tick(&mut svg, (at, x(at)), BOTTOM..BOTTOM + 4.0, BOTTOM + 17.0);
        }
        let line: Vec<_> = self.points.iter().map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value))).collect();
        let _ = writeln!(svg, "<polyline points=\"{}\"/>", line.join(" "));
        // A line of few points is hard to see, and a single point has no line.
        for (at, value) in self.points.iter().filter(|_| self.points.len() <= 12) {
            let _ = writeln!(svg, "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>", x(*at), y(*value));
        }
        let middle = (LEFT + RIGHT) / 2.0;
        let _ = write!(
            svg,
            "<text class=\"unit\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">seconds since the start</text>\n</svg>",
            BOTTOM + 34.0
        );
        svg
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_numbers() {
        let axes = [(1.0, 1.0, 0.5), (1.01, 1.5, 0.5), (7.0, 8.0, 2.0), (27_211.0, 30_000.0, 10_000.0)];
        for (value, top, step) in axes {
            assert_eq!(axis(value), (top, step), "{value}");
        }
        assert!(axis(0.0).0 > 0.0 && axis(u64::MAX as f64).0 >= u64::MAX as f64);
        let ticks = [(0.0, "0"), (0.05, "0.05"), (2.5, "2.5"), (9_999.0, "9999"), (20_000.0, "20k"), (2.5e6, "2.5M")];
        for (value, text) in ticks {
            assert_eq!(tick(value), text);
        }
    }

    #[test]
    fn charts_of_few_values_have_finite_coordinates() {
        let bars: [&[Bar]; 3] = [&[], &[Bar::new("none", 0)], &[Bar::new("all", u64::MAX), Bar::new("<&>", 1)]];
        for bars in bars {
            let svg = bar_chart("b", "Bars", ("records", "duplicates"), bars);
            assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("<&>"), "{svg}");
        }
        let lines: [&[(f64, f64)]; 4] = [&[], &[(0.0, 0.0)], &[(0.0, 5.0)], &[(0.0, 1.0), (0.0, 2.0)]];
        for points in lines {
            let svg = LineChart { id: "l", title: "Line", unit: "records per second", points }.to_svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.matches("<text").count() < 20, "{svg}");
        }
    }
}
