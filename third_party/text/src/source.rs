//! A chat template's text, made ready for minijinja.
//!
//! - Jinja2 reads every kind of line break as `\n`.
//! - transformers' own tag `generation` marks what the model said; to render,
//!   it is a block that is always there.
//! - What goes into a namespace goes through the filter `storable`
//!   (`storable.rs`), what goes into a variable through `bounded`
//!   (`bounds.rs`).

/// Templates in use have some ten thousand bytes. The limit also bounds how
/// deep values get that are nested one tag at a time.
const MAX_BYTES: usize = 128 << 10;

pub fn prepared(source: &str) -> Result<String, String> {
    if source.len() > MAX_BYTES {
        return Err(format!(
            "the chat template has {} bytes, more than the {MAX_BYTES} allowed",
            source.len()
        ));
    }
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut result = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some(start) = next_tag(rest) {
        let (before, tag) = rest.split_at(start);
        result.push_str(before);
        let end = end_of(tag);
        let (tag, after) = tag.split_at(end);
        rest = after;
        match Block::of(tag) {
            None => result.push_str(tag),
            Some(block) if block.words() == ["raw"] => {
                let end = rest.find("endraw").unwrap_or(rest.len());
                result.push_str(tag);
                result.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            Some(block) => result.push_str(&block.rewritten()),
        }
    }
    result.push_str(rest);
    Ok(result)
}

/// Where the next block, expression or comment begins.
fn next_tag(text: &str) -> Option<usize> {
    let opens = |at: usize| matches!(text.as_bytes().get(at + 1), Some(b'%' | b'{' | b'#'));
    text.match_indices('{')
        .map(|(at, _)| at)
        .find(|&at| opens(at))
}

/// Where the tag that `text` begins with ends; a text in quotes ends no tag.
fn end_of(text: &str) -> usize {
    let closing = match &text[..2] {
        "{%" => "%}",
        "{{" => "}}",
        _ => return text.find("#}").map_or(text.len(), |at| at + 2),
    };
    unquoted(text)
        .find(|&(at, _)| text[at..].starts_with(closing))
        .map_or(text.len(), |(at, _)| at + 2)
}

/// The characters outside of quotes, with their places.
fn unquoted(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let mut quote = None;
    let mut escaped = false;
    text.char_indices().filter(move |&(_, c)| {
        let was_quoted = quote.is_some();
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None => {}
        }
        !was_quoted && quote.is_none()
    })
}

/// `{%`, maybe with a sign, what it says, and the same at its end.
struct Block<'a> {
    open: &'a str,
    body: &'a str,
    close: &'a str,
}

impl<'a> Block<'a> {
    fn of(tag: &'a str) -> Option<Self> {
        let inner = tag.strip_prefix("{%")?.strip_suffix("%}")?;
        let body = inner.trim_start_matches(['-', '+']);
        let start = tag.len() - 2 - body.len();
        let body = body.trim_end_matches(['-', '+']);
        let end = start + body.len();
        Some(Block {
            open: &tag[..start],
            body,
            close: &tag[end..],
        })
    }

    fn words(&self) -> Vec<&str> {
        self.body.split_whitespace().collect()
    }

    fn rewritten(&self) -> String {
        let body = match self.words()[..] {
            ["generation"] => " if true ".to_owned(),
            ["endgeneration"] => " endif ".to_owned(),
            ["set", ..] => stored(self.body),
            _ => self.body.to_owned(),
        };
        format!("{}{body}{}", self.open, self.close)
    }
}

/// A `set` tag; what its target gets is filtered.
fn stored(body: &str) -> String {
    let mut depth = 0;
    let equals = unquoted(body).find(|&(_, c)| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        c == '=' && depth == 0
    });
    match equals {
        Some((at, _)) => {
            let (target, value) = body.split_at(at);
            let filter = if target.contains('.') {
                "storable"
            } else {
                "bounded"
            };
            format!("{target}= ({}) | {filter} ", &value[1..])
        }
        // The text up to endset, after filters of its own.
        None if body.contains('.') => format!("{body} | storable "),
        _ => body.to_owned(),
    }
}
