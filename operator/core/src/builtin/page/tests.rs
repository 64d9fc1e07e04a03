//! Pages as Markdown, hostile ones too.

use super::*;
use crate::test_cost::assert_linear;

fn page(html: &str) -> PageText {
    read(html, &Url::parse("https://a.example/dir/page?q").unwrap())
}

fn check(html: &str, markdown: &str) {
    assert_eq!(page(html).markdown, markdown, "{html}");
}

#[test]
fn blocks_stand_apart_and_white_space_is_one_blank() {
    check("<h1>Big\n  news</h1>\n<p>One</p><p>Two<br>lines", "# Big news\n\nOne\n\nTwo\nlines");
    check("a <b>b</b><i>c</i>\t&amp; d&nbsp;e", "a bc & d e");
    check("<div><div><p></p></div></div>x<hr>y", "x\n\n---\n\ny");
    check("<blockquote><p>said</p></blockquote>after", "> said\n\nafter");
    check("<dl><dt>Word<dd>meaning</dl>", "Word\n: meaning");
}

#[test]
fn lists_have_bullets_numbers_and_depth() {
    check("<ul><li>a<li><p>b</p></ul>c", "- a\n- b\n\nc");
    check("<ol><li>a<ul><li>x</li></ul></li><li>b</ol>", "1. a\n  - x\n2. b");
    check("<li><h3>t</h3>", "- ### t");
    check("</ul></ol><li>a", "- a");
}

#[test]
fn code_and_preformatted_text_stay_as_they_are() {
    check("run <code>a  b</code> now <code></code>.", "run `a b` now .");
    check("x<pre><code>if a:\n  b\n</code></pre>y", "x\n\n```\nif a:\n  b\n```\n\ny");
    check("<pre>open", "```\nopen\n```");
}

#[test]
fn rows_of_tables_are_lines() {
    check("<table><tr><th>a</th><th>b</th></tr><tr><td>1<td>2</table>", "a | b\n1 | 2");
}

#[test]
fn links_are_absolute_and_listed_once() {
    let page = page(
        "<a href='x.html'>one <b>two</b></a> <a href='/y'>y</a> <a href='#here'>here</a> <a href='x.html'>again</a>\
         <a href='mailto:a@b.c'>mail</a><a href='/z'><img src=i></a><a href='/w'><img alt=Logo></a>",
    );
    let one = "https://a.example/dir/x.html";
    assert_eq!(
        page.markdown,
        format!(
            "[one two]({one}) [y](https://a.example/y) here [again]({one})mail[Logo](https://a.example/w)"
        )
    );
    let expected = [(one, "one two"), ("https://a.example/y", "y"), ("https://a.example/w", "Logo")];
    assert_eq!(page.links, expected.map(|(url, words)| (url.to_owned(), words.to_owned())));
    assert_eq!(self::page("<base href='https://b.example/'><a href=c>c").links[0].0, "https://b.example/c");
}

#[test]
fn title_description_and_language_are_read_from_the_head() {
    let page = page(
        "<!doctype html><html lang=de><head><title>A &amp;\n B</title><meta property='og:description' content=no>\
         <meta name=Description content=' What  it is '><meta property='og:description' content=no></head><body>x",
    );
    assert_eq!((page.title.as_str(), page.description.as_str()), ("A & B", "What it is"));
    assert_eq!((page.language.as_str(), page.markdown.as_str()), ("de", "x"));
}

#[test]
fn scripts_styles_and_pictures_are_no_text() {
    check(
        "a<script>if (a < b) '<p>x'</script><style>p > b {}</style><!-- c --><svg><title>t</title></svg>b",
        "ab",
    );
    check("a<noscript><p>n</p></noscript><template><p>t</p></template><select><option>o</select>b", "ab");
    check("a<svg/>b<svg><svg/></svg>c", "abc");
}

#[test]
fn hostile_pages_cost_little_time() {
    for tag in [
        "<div>",
        "<b>",
        "<ul><li>",
        "<table><tr><td>",
        "<a href=x>",
        "<pre>",
        "<svg>",
        "<code>",
        "<h1>",
        "</p>",
    ] {
        assert_linear(32_000, |bytes| drop(page(&tag.repeat(bytes / tag.len()))));
        let with_text = format!("{tag}x");
        let markdown = page(&with_text.repeat(256_000 / with_text.len())).markdown;
        assert!(markdown.len() < 6_000_000, "{tag}: {}", markdown.len());
        assert_linear(32_000, |bytes| drop(page(&with_text.repeat(bytes / with_text.len()))));
    }
}

#[test]
fn no_text_makes_the_reader_panic() {
    let mut rng = crate::test_rng::TestRng::new(7);
    let parts = [
        "<a href='/x'>",
        "</a>",
        "<li>",
        "</ul>",
        "<pre>",
        "</pre>",
        "<code>",
        "</code>",
        "é",
        " ",
        "<td>",
        "<h2>",
        "<br>",
        "<ol>",
    ];
    for _ in 0..5_000 {
        let html: String = (0..12).map(|_| parts[rng.below(14) as usize]).collect();
        page(&html);
        page(&rng.text("<>/a'\"=& é!-", 30));
    }
}
