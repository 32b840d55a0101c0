//! A kernel command line taken apart, and the shell assignments of /etc/default/grub that make one.

/// The tokens: split at white space outside double quotes, the quotes taken away. The kernel reads
/// `a="b c"` and GRUB passes on `"a=b c"`; both are the token `a=b c`.
pub fn split_command_line(line: &str) -> Vec<String> {
    let (mut out, mut token, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                any = true;
            }
            c if c.is_whitespace() && !quoted => {
                if any {
                    out.push(std::mem::take(&mut token));
                }
                any = false;
            }
            c => {
                token.push(c);
                any = true;
            }
        }
    }
    if any {
        out.push(token);
    }
    out
}

/// Parameters that count each time they are given
/// (Documentation/admin-guide/kernel-parameters.txt); of all others the last one counts.
const REPEATED: [&str; 5] = ["console", "earlycon", "memmap", "pci", "netconsole"];

/// True when each occurrence of the parameter counts.
pub fn is_repeated(parameter: &str) -> bool {
    REPEATED.contains(&parameter)
}

/// One declared parameter: `iommu=pt`, or a bare word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLineParameter {
    /// `iommu`.
    pub name: String,
    /// `pt`; none for a bare word such as `nosmt`.
    pub value: Option<String>,
}

impl CommandLineParameter {
    /// As one token.
    pub fn token(&self) -> String {
        match &self.value {
            Some(value) => format!("{}={value}", self.name),
            None => self.name.clone(),
        }
    }

    /// True when GRUB's script would end the word within the value (GRUB manual, "Shell-like
    /// scripting").
    pub fn needs_quotes(&self) -> bool {
        self.value.as_ref().is_some_and(|value| {
            value.contains(|c: char| c.is_whitespace() || ";&|<>{}".contains(c))
        })
    }

    /// The token in a command line that stands for this parameter: the last one, or, where each
    /// occurrence counts, the one with this very value.
    pub fn found_in<'a>(&self, tokens: &'a [String]) -> Option<&'a str> {
        let token = if is_repeated(&self.name) {
            tokens.iter().find(|token| **token == self.token())
        } else {
            let mut tokens = tokens.iter().rev();
            tokens.find(|token| token.split('=').next() == Some(self.name.as_str()))
        };
        token.map(String::as_str)
    }
}

/// What the assignments of /etc/default/grub and grub.d come to, read in the order in which
/// grub-mkconfig sources them. The rest of the shell language is not read: what we cannot follow
/// stays as text and is never executed.
#[derive(Debug, Default)]
pub struct DefaultFiles {
    linux: String,
    linux_default: String,
}

impl DefaultFiles {
    /// Takes in one line of one of the files.
    pub fn take(&mut self, line: &str) {
        let line = line.trim().trim_start_matches("export ").trim_start();
        if let Some(value) = line.strip_prefix("GRUB_CMDLINE_LINUX=") {
            self.linux = self.value(value);
        } else if let Some(value) = line.strip_prefix("GRUB_CMDLINE_LINUX_DEFAULT=") {
            self.linux_default = self.value(value);
        }
    }

    /// The tokens that a normal (not a recovery) entry gets, in grub-mkconfig's order.
    pub fn tokens(&self) -> Vec<String> {
        split_command_line(&format!("{} {}", self.linux, self.linux_default))
    }

    fn value(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text.chars().peekable();
        let mut quote = None;
        while let Some(c) = rest.next() {
            match (c, quote) {
                ('\'', Some('\'')) | ('"', Some('"')) => quote = None,
                (c @ ('\'' | '"'), None) => quote = Some(c),
                ('\\', None | Some('"')) => out.extend(rest.next()),
                ('$', None | Some('"')) => self.expand(&mut rest, &mut out),
                (c, None) if c.is_whitespace() || c == ';' || c == '#' => break,
                (c, _) => out.push(c),
            }
        }
        out
    }

    fn expand(&self, rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
        let braced = rest.next_if_eq(&'{').is_some();
        let mut name = String::new();
        while let Some(c) = rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(c);
        }
        if braced {
            rest.next_if_eq(&'}');
        }
        match name.as_str() {
            "GRUB_CMDLINE_LINUX" => out.push_str(&self.linux),
            "GRUB_CMDLINE_LINUX_DEFAULT" => out.push_str(&self.linux_default),
            other => out.push_str(&format!("${other}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_as_the_kernel_and_grub_do() {
        assert_eq!(
            split_command_line("ro  quiet dyndbg=\"file a.c +p\" \"x=1 2\"\n"),
            ["ro", "quiet", "dyndbg=file a.c +p", "x=1 2"]
        );
        assert!(split_command_line("  \n").is_empty());
    }

    #[test]
    fn of_a_parameter_the_last_counts_and_of_a_console_each() {
        let line = split_command_line("iommu=off console=tty0 iommu=pt console=ttyS0,115200");
        let parameter = |name: &str, value: &str| CommandLineParameter {
            name: name.into(),
            value: Some(value.into()),
        };
        assert_eq!(parameter("iommu", "off").found_in(&line), Some("iommu=pt"));
        assert_eq!(
            parameter("console", "tty0").found_in(&line),
            Some("console=tty0")
        );
        assert_eq!(parameter("console", "tty1").found_in(&line), None);
        assert_eq!(parameter("io", "pt").found_in(&line), None);
    }

    #[test]
    fn follows_the_assignments_that_distributions_ship() {
        let mut files = DefaultFiles::default();
        // Debian 12 /etc/default/grub; Debian cloud images' 15_...cfg; our own drop-in
        for line in [
            "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"",
            "GRUB_CMDLINE_LINUX=\"console=tty0 console=ttyS0,115200 earlyprintk=ttyS0,115200\"",
            "GRUB_CMDLINE_LINUX_DEFAULT=\"${GRUB_CMDLINE_LINUX_DEFAULT} a='b' $OTHER\"",
            "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT iommu=pt dyndbg=\\\"file \
             +p\\\"\" # ours",
        ] {
            files.take(line);
        }
        assert_eq!(
            files.tokens(),
            [
                "console=tty0",
                "console=ttyS0,115200",
                "earlyprintk=ttyS0,115200",
                "quiet",
                "a='b'",
                "$OTHER",
                "iommu=pt",
                "dyndbg=file +p"
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line in "(GRUB_CMDLINE_LINUX=)?[\"'$\\{}\\\\a= ]{0,30}") {
            let mut files = DefaultFiles::default();
            files.take(&line);
            files.tokens();
        }
    }
}
