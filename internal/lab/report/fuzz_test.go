package report

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"orrery/internal/lab/bundle"
)

// live returns the index of a control character that a terminal or a browser would interpret, or
// -1. It ignores newlines and tabs.
func live(text string) int {
	return strings.IndexFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
	})
}

var (
	mdLink   = regexp.MustCompile(`(^|[^\\])(\\\\)*\]\(`)
	mdScheme = regexp.MustCompile(`(?i)(javascript|data|vbscript|https?|file):[^\s]`)
)

// harmlessOutput checks all output for a bundle.
func harmlessOutput(t *testing.T, r *Report) {
	t.Helper()
	compared := compareTwo(r, r)
	for name, write := range map[string]func(io.Writer) error{
		"report.txt": r.Text, "report.md": r.Markdown, "report.html": r.HTML, "report.csv": r.CSV,
		"compare.txt": compared.Text, "compare.md": compared.Markdown, "compare.html": compared.HTML,
	} {
		said := text(t, write)
		if i := live(said); i >= 0 {
			t.Fatalf("%s has a character of control: %q", name, said[max(0, i-40):min(len(said), i+40)])
		}
		if strings.HasSuffix(name, ".html") &&
			regexp.MustCompile(`(?i)<script|href="[^#]|<[a-z][^>]* on[a-z]+=`).MatchString(said) {
			t.Fatalf("%s refers to or runs something:\n%s", name, said)
		}
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		for line := range strings.Lines(said) {
			if code := strings.HasPrefix(line, "    "); !code &&
				(mdLink.MatchString(line) || mdScheme.MatchString(line) || strings.Contains(line, "<script")) {
				t.Fatalf("%s has a link or HTML: %q", name, line)
			}
		}
	}
	if err := r.JSON(io.Discard); err != nil {
		t.Fatal(err)
	}
}

// FuzzBundle checks that no content of a bundle makes reading, reporting, comparing or checking
// panic or hang, and that it reaches a terminal or a page only as text.
func FuzzBundle(f *testing.F) {
	head := `{"format":1,"id":"b","state":"done","title":"t","settings":[{"name":"bare"},{"name":"bare again"},{"name":"veth"},{"name":"veth again","again":"veth"}],` +
		`"tests":[{"name":"cpu","kind":"capture","copies":1,"figures":[{"Name":"score","Unit":"1/s","Better":"more","Aggregate":"sum"}]}]}`
	var trials, seconds strings.Builder
	for round := range 7 {
		for i, s := range []string{"bare", "bare again", "veth", "veth again"} {
			trials.WriteString(`{"round":` + strconv.Itoa(round) + `,"instance":` + strconv.Itoa(round) + `,"setting":"` + s +
				`","test":"cpu","began":"2026-01-01T00:00:0` +
				strconv.Itoa(i) + `Z","ended":"2026-01-01T00:00:09Z","samples":[{"figure":"score","value":` +
				strconv.Itoa(100+round+i) + `}],` +
				`"detail":{"curve":[{"rate":1,"achieved":1e9,"sent":9,"received":8,"valid":true,"died":{"where":{"socket":3}}}]}}` + "\n")
		}
		seconds.WriteString(`{"at":"2026-01-01T00:00:0` + strconv.Itoa(round) +
			`Z","took":1,"cpu":{"user":1,"idle":1},"net":[{"name":"eth0","rx":{"bytes":9}}]}` + "\n")
	}
	facts := `{"kernel":{"release":"6.1"},"list":[{"name":"a","x":[1,2]},{"name":"b"}]}`
	f.Add(head, trials.String(), seconds.String(), facts, "x")
	f.Add(head, strings.ReplaceAll(trials.String(), `"detail"`,
		`"series":[{"figure":"score","step":1,"values":[1,2,3,1e18,1000000000000000128,-1e308,1e308]}],"detail"`),
		seconds.String(), facts, "")
	f.Add(head, strings.ReplaceAll(trials.String(), `"round":3`, `"round":-3`), "{}\n{\"took\":-1}\n", `[[[[]]]]`,
		"{\"tests\":[]}")
	f.Add(strings.ReplaceAll(head, `"t"`,
		`"[x](javascript:alert(1)) \u001b[2J\u009b1m\u202e http://x www.x.y a@b.c <javascript:x> \\"`),
		strings.ReplaceAll(trials.String(), `"samples"`,
			`"error":"\u001b]0;x\u0007 [y](data:z)","output":"`+"```"+
				`\r\u001b","labels":[{"name":"\u001b","why":"[a](b:c)"}],"samples"`), "", "{}", "")
	f.Add(head, strings.ReplaceAll(trials.String(), "2026-01-01T00:00:00", "2026-01-01T00:00\x7f00"),
		strings.ReplaceAll(seconds.String(), "eth0", "\u009b"), "{\"\x7f\":\"\x7f\"}", "a,b\n\x1b,c\n")
	f.Add(`{"format":1,"tests":[{"name":"`+strings.Repeat("a", 300)+
		`","copies":-1,"figures":[{"Name":"x"},{"Name":"x"}]}],"settings":[{"name":"bare"},{"name":"bare"},{"name":"a","again":"a"}]}`,
		`{"round":1000,"setting":"bare","test":"a","samples":[{"figure":"x","value":1e308}]}`+"\n", "", "null", "")
	f.Fuzz(func(t *testing.T, head, trials, seconds, facts, report string) {
		defer time.AfterFunc(20*time.Second, func() {
			panic("no end with " + strconv.Quote(head+trials+seconds+facts+report))
		}).Stop()
		dir := t.TempDir()
		for name, content := range map[string]string{bundle.ManifestFile: head, bundle.TrialsFile: trials,
			bundle.SecondsFile: seconds, bundle.FactsFile: facts,
			"report.json": report, "report.csv": report} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		c, err := bundle.Read(dir)
		if err != nil {
			if live(err.Error()) >= 0 {
				t.Fatalf("the error has a character of control: %q", err)
			}
			return
		}
		harmlessOutput(t, Analyse(c))
		checked, err := Check(dir)
		if err != nil {
			return
		}
		for _, d := range checked.Differences {
			if live(d.String()) >= 0 {
				t.Fatalf("a difference has a character of control: %q", d)
			}
		}
	})
}

// TestStrangersBundle: whatever an untrusted person puts in the place of a bundle's files, the
// result is a clear error at once, and nothing outside the bundle is read.
//
// Promise (Files of strangers): `lab report`, `check`, `compare` and `ls` of a stranger's bundle
// read nothing outside it, do not hang, and show its words as text, without links, scripts and
// formulas. With lab/report.TestLinksInMarkdown, lab/report.FuzzBundle.
func TestStrangersBundle(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("{\"round\":1,\"error\":\"of the host\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(path string) error{
		"an endless device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"a named pipe":      func(path string) error { return unix.Mkfifo(path, 0o644) },
		"a link outside":    func(path string) error { return os.Symlink(secret, path) },
		"a huge file":       func(path string) error { return sparse(path) },
		"a directory":       func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		for _, file := range []string{bundle.SecondsFile, bundle.TrialsFile, bundle.FactsFile, bundle.ExperimentFile,
			bundle.ManifestFile, "report.json", "report.csv", ".lock"} {
			t.Run(name+" as "+file, func(t *testing.T) {
				dir := rewritten(t, twins(6, nil, nil))
				if c, err := bundle.Read(dir); err != nil || Analyse(c).Write(dir) != nil {
					t.Fatal("there is no report", err)
				}
				path := filepath.Join(dir, file)
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				if err := put(path); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				c, err := bundle.Read(dir)
				if err == nil && len(c.Damaged) == 0 && file[0] != 'r' && file != ".lock" {
					t.Errorf("%s: nothing is said of it", file)
				}
				if err == nil {
					if said := all(t, Analyse(c)); strings.Contains(said, "of the host\"") || strings.Contains(said, "1 failed") {
						t.Error("what is outside was read")
					}
				}
				if checked, err := Check(dir); err == nil && strings.Contains(fmt.Sprint(checked.Differences), "of the host") {
					t.Error("what is outside is told as a difference")
				}
				_ = bundle.IsLocked(dir)
				_, _ = bundle.List(filepath.Dir(dir))
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it took %v", took)
				}
				// Resuming such a bundle would write through links.
				link := strings.Contains(name, "device") || strings.Contains(name, "pipe") || strings.Contains(name, "link")
				if w, _, err := bundle.Open(t.Context(), dir, "eve"); err == nil && link {
					t.Errorf("it was gone on with: %v", w.Close())
				}
			})
		}
	}
}

// TestLinksInMarkdown: no text becomes a link or controls a terminal.
func TestLinksInMarkdown(t *testing.T) {
	for _, evil := range []string{"[click](javascript:alert(1))", `\[click](javascript:alert(1))`,
		`\\[click](javascript:1)`, "<javascript:alert(1)>", "https://evil.example/x", "www.evil.example",
		"a@evil.example", "![x](data:image/svg+xml;base64,AA)", "[x]: javascript:alert(1)", "\x1b[2J", "\u202etxt",
		"&#x5b;x](a:b)"} {
		c := twins(6, nil, func(x *bundle.Trial) {
			if x.Round == 2 {
				x.Error, x.Output = evil, evil+"\n```\n"+evil
			}
		})
		c.Manifest.Title, c.Manifest.Host, c.Manifest.Source, c.Manifest.ID = evil, evil, evil, evil
		dir := rewritten(t, c)
		again, err := bundle.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		harmlessOutput(t, Analyse(again))
	}
}

// rewritten writes contents as a bundle.
func rewritten(t *testing.T, c *bundle.Contents) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "b")
	w, err := bundle.Create(t.Context(), dir, c.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range c.Trials {
		if err := w.AppendTrial(x); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sparse creates a file that is larger than any memory but uses no disk space.
func sparse(path string) error {
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return err
	}
	return os.Truncate(path, 1<<40)
}
