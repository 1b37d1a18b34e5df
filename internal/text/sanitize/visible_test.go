package sanitize

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"plain text\nof two lines\twith a tab", "plain text\nof two lines\twith a tab"},
		{"Grüße, 世界 🙂", "Grüße, 世界 🙂"},
		{"\x1b[2J\x1b]0;root@host\x07", `\x1b[2J\x1b]0;root@host\x07`},
		{"\u009b31m", `\u009b31m`}, // the same as ESC [ on an 8-bit terminal
		{"\x9b31m", `\x9b31m`},     // invalid UTF-8
		{"a\rb\bc\x7f\x00", `a\rb\x08c\x7f\x00`},
		{"invoice\u202efdp.exe", `invoice\u202efdp.exe`},
		{"\u2066\u2069\u200b\ufeff\u2028\u2029\U000e0041", `\u2066\u2069\u200b\ufeff\u2028\u2029\U000e0041`},
		{"\ufffd is a character", "\ufffd is a character"},
		{"cut \xe4\xb8", `cut \xe4\xb8`},
	} {
		if got := Text(c.in); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
	if got, want := Line("a\nb\tc"), `a\nb\tc`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWriter: the result does not depend on how a text is split into writes.
//
// Promise (What others print and answer): What a node, file or archive prints or names reaches a
// terminal as text, except in `shell`, at a `console` and with `--raw`. With
// text/sanitize.FuzzText, cli.TestErrorsOnScreen, cli/nodeverb.TestExecOnScreen.
func TestWriter(t *testing.T) {
	const text = "世界\x1b[0m🙂\xe4\xb8 \xff\u202e\u009bx\xf0\x9f"
	for size := 1; size <= len(text); size++ {
		var out bytes.Buffer
		w := NewWriter(&out)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if done, err := w.Write([]byte(rest[:n])); done != n || err != nil {
				t.Fatal(done, err)
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != Text(text) {
			t.Errorf("in pieces of %d: %q, want %q", size, got, Text(text))
		}
	}
}

func TestRaw(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	w.Write([]byte("a\x1b\xe4"))  //nolint:errcheck // to memory
	w.Raw().Write([]byte("\x1b")) //nolint:errcheck // to memory
	w.Write([]byte("\xb8"))       //nolint:errcheck // to memory
	if got, want := out.String(), "a\\x1b\\xe4\x1b\\xb8"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzText(f *testing.F) {
	f.Add("\x1b[31m\u202e\xff", 3)
	f.Fuzz(func(t *testing.T, s string, at int) {
		got := Text(s)
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return hidden(r) && r != '\n' && r != '\t' }) {
			t.Errorf("%q still has what a terminal obeys", got)
		}
		if Text(got) != got {
			t.Errorf("%q is shown differently a second time", got)
		}
		var out bytes.Buffer
		w := NewWriter(&out)
		at = max(0, min(at, len(s)))
		w.Write([]byte(s[:at])) //nolint:errcheck // to memory
		w.Write([]byte(s[at:])) //nolint:errcheck // to memory
		w.Flush()               //nolint:errcheck // to memory
		if out.String() != got {
			t.Errorf("cut at %d: %q, whole: %q", at, out.String(), got)
		}
	})
}

// TestLastLines: the end of a program's output is shown, sanitized.
func TestLastLines(t *testing.T) {
	printed := LastLines([]byte(strings.Repeat("old\r\n", 5000) + "Kernel panic\x1b[2J\r\n"))
	if strings.Count(printed, "old") != 9 || !strings.Contains(printed, "\nKernel panic") ||
		strings.ContainsAny(printed, "\x1b\r") {
		t.Errorf("%q", printed)
	}
}
