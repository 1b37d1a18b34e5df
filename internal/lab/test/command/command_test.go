package command

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/text/shell"
)

func from(text string) func(any) error {
	return func(options any) error {
		return toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(options)
	}
}

const took = "\n[[figures]]\nname = \"took\"\nunit = \"s\"\nbetter = \"less\"\nregex = \"took ([0-9.]+)\"\n"

func trial(t *testing.T) *test.Trial {
	return &test.Trial{
		Near: &place.Place{Runner: host.Local{Name: "bare"}, Name: "bare", Dir: t.TempDir(),
			Address: netip.MustParseAddr("10.0.0.1")}, Round: 3, Copy: 1, Of: 2,
		Far:     &place.Place{Runner: host.Local{Name: "far"}, Name: "far", Address: netip.MustParseAddr("127.0.0.1")},
		Barrier: func(context.Context) error { return nil }, Keep: func(string, []byte) error { return nil },
	}
}

func run(t *testing.T, tr *test.Trial, text string) (test.Result, error) {
	t.Helper()
	c, err := New(from(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := c.Check(t.Context(), tr); err != nil {
		return test.Result{}, err
	}
	return c.Run(t.Context(), tr)
}

func TestRun(t *testing.T) {
	kept := ""
	tr := trial(t)
	tr.Keep = func(name string, content []byte) error { kept = name + ": " + string(content); return nil }
	r, err := run(t, tr, `command = "echo it took 1.50 s"`+took)
	if err != nil {
		t.Fatal(err)
	}
	if want := []test.Sample{{Figure: "took", Value: 1.5}}; !slices.Equal(r.Samples, want) ||
		kept != "output.txt: it took 1.50 s\n" {
		t.Errorf("%v, kept %q", r.Samples, kept)
	}
	r, err = run(t, tr, `command = ["echo", '{"a": {"b": [7, {"c": 2.5e3}]}, "s": "8", "ms": 12}']`+`
[[figures]]
name = "x"
unit = "bit/s"
json = "a.b.1.c"
[[figures]]
name = "y"
unit = "1"
json = "s"
[[figures]]
name = "z"
unit = "s"
json = "ms"
factor = 1e-3
`)
	if want := []test.Sample{{Figure: "x", Value: 2500}, {Figure: "y", Value: 8},
		{Figure: "z", Value: 0.012}}; err != nil || !slices.Equal(r.Samples, want) {
		t.Errorf("%v, %v", r.Samples, err)
	}
}

// TestEvery: a figure whose regex matches every second is the mean, and its values keep their
// order.
func TestEvery(t *testing.T) {
	r, err := run(t, trial(t), `command = "echo load 3; echo load 5; echo load 1"`+`
[[figures]]
name   = "load"
unit   = "1/s"
regex  = "load ([0-9.]+)"
every  = 1
factor = 10
`)
	if err != nil {
		t.Fatal(err)
	}
	if want := []test.Sample{{Figure: "load", Value: 30}}; !slices.Equal(r.Samples, want) {
		t.Errorf("%v", r.Samples)
	}
	if len(r.Series) != 1 || r.Series[0].Figure != "load" || r.Series[0].Step != 1 ||
		!slices.Equal(r.Series[0].Values, []float64{30, 50, 10}) {
		t.Errorf("%+v", r.Series)
	}
	if _, err := run(t, trial(t),
		"command = \"echo none\"\n[[figures]]\nname = \"x\"\nunit = \"s\"\nregex = \"load ([0-9])\"\nevery = 1\n"); err == nil ||
		!strings.Contains(err.Error(), "the output of the command has no match for") {
		t.Errorf("%v", err)
	}
	for more, want := range map[string]string{"every = -1\nregex = \"(x)\"": "every = -1",
		"every = 1\njson = \"a\"": "has both every and json"} {
		_, err := New(from("command = \"true\"\n[[figures]]\nname = \"x\"\nunit = \"s\"\n" + more + "\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", more, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	tr := trial(t)
	dir := tr.Near.Dir
	for _, c := range []struct{ name, want string }{
		{"SETTING", "bare"}, {"ROUND", "3"}, {"COPY", "1"}, {"COPIES", "2"}, {"FAR", "127.0.0.1"}, {"NEAR", "10.0.0.1"},
		{"PORT", "7001"}, {"DIR", dir + "/1"},
	} {
		_, err := run(t, tr, "far_port = 7000\ncommand = \"[ \\\"$ORRERY_"+c.name+"\\\" = "+c.want+
			" ] && cd $ORRERY_DIR && echo took 1\""+took)
		if err != nil {
			t.Errorf("ORRERY_%s is not %s: %v", c.name, c.want, err)
		}
	}
}

// TestLayer: on the bare host the listed programs are those of the layer, even in a shell script.
func TestLayer(t *testing.T) {
	tr := trial(t)
	file := filepath.Join(t.TempDir(), "it's mine")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho took $1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tr.Near.Programs = func(name string) []string {
		if name == "my-tool" {
			return []string{"/bin/sh", file}
		}
		return []string{name}
	}
	for _, command := range []string{`"my-tool 5"`, `"my-tool 5 | cat"`, `"x=$(my-tool 5); echo $x"`, `["my-tool", "5"]`} {
		r, err := run(t, tr, "command = "+command+"\nprograms = [\"my-tool\"]"+took)
		if err != nil || len(r.Samples) != 1 || r.Samples[0].Value != 5 {
			t.Errorf("%s: %v, %v", command, r.Samples, err)
		}
	}
	if _, err := run(t, tr, "command = \"x\"\nprograms = [\"no-such\"]"+took); err == nil ||
		err.Error() != "bare: program no-such is missing (add the package that contains it to packages)" {
		t.Errorf("without a program: %v", err)
	}
}

func TestFailures(t *testing.T) {
	for command, want := range map[string]string{
		`"echo nothing of that kind; echo on two lines"`: "bare: \"took\": the output of the command has no match for took ([0-9.]+); its output: \n    nothing of that kind\n    on two lines\n  cure: only standard output",
		`"true"`:                     "its output: \n    (nothing)",
		`"echo took ..."`:            `"took": "..." is not a number`,
		`"echo no disk >&2; exit 7"`: "exit status 7\n    \n    no disk",
		`["/nowhere/x"]`:             "bare: the command failed: bare: ",
	} {
		_, err := run(t, trial(t), "command = "+command+took)
		if err == nil || !strings.Contains(err.Error(), want) &&
			!strings.Contains(strings.ReplaceAll(err.Error(), "    \n", ""), strings.ReplaceAll(want, "    \n", "")) {
			t.Errorf("%s:\ngot  %v\nwant %s", command, err, want)
		}
	}
	long := strings.Repeat("x", 2000)
	_, err := run(t, trial(t), "command = [\"echo\", \""+long+"\"]"+took)
	if err == nil || len(err.Error()) > 1000 || !strings.Contains(err.Error(), "xxx …") {
		t.Errorf("of a long output: %v", err)
	}
}

func TestReadJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1`:        `"x": the output of the command is not complete JSON`,
		`{"b": 1}`:       `"x": the output of the command has nothing at a`,
		`{"a": null}`:    `"x": the output of the command has nothing at a`,
		`{"a": [1, 2]}`:  `"x": the value at a is not a number: [1, 2]`,
		`{"a": "12 ms"}`: `"x": "12 ms" is not a number`,
		`{"a": "NaN"}`:   `"x": "NaN" is not a number`,
	} {
		if _, _, err := (&figure{Name: "x", JSON: "a"}).read(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestFar: the far command listens before the near command starts, and has ended afterwards.
func TestFar(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3 as a server")
	}
	const server = `import socket,os; s=socket.create_server(("127.0.0.1",int(os.environ["ORRERY_PORT"]))); c=s.accept()[0]; c.sendall(b"took 42\n"); c.close()`
	const client = `import socket,os; print(socket.create_connection((os.environ["ORRERY_FAR"],int(os.environ["ORRERY_PORT"]))).makefile().read())`
	text := fmt.Sprintf("far_port = 32471\nfar_command = ['python3', '-c', '%s']\ncommand = ['python3', '-c', '%s']",
		server, client) + took
	for range 2 {
		r, err := run(t, trial(t), text)
		if err != nil || r.Samples[0].Value != 42 {
			t.Fatalf("%v, %v", r.Samples, err)
		}
	}
	if _, err := run(t, trial(t), "far_port = 32471\nfar_command = \"echo no licence; exit 1\"\ncommand = \"true\""+
		took); err == nil ||
		!strings.Contains(err.Error(), "ended before listening on tcp port 32472: no licence") {
		t.Errorf("of a far command that fails: %v", err)
	}
	tr := trial(t)
	tr.Far = nil
	if _, err := run(t, tr, text); err == nil || err.Error() != "bare: the test needs a far end" {
		t.Errorf("without a far end: %v", err)
	}
}

func TestNew(t *testing.T) {
	c, err := New(from("command = \"x\"\npackages = [\"hping3\"]\nseconds = 2.5\nfar = true" + took +
		"[[figures]]\nname = \"n\"\nunit = \"1/s\"\nregex = \"(.)\""))
	if err != nil {
		t.Fatal(err)
	}
	want := []test.Figure{{Name: "took", Unit: "s", Better: test.Less, Aggregate: test.Mean},
		{Name: "n", Unit: "1/s", Better: test.Neither, Aggregate: test.Sum}}
	if n := c.Needs(); !slices.Equal(c.Figures(), want) || c.Time() != 2500*time.Millisecond || !n.Far ||
		!slices.Equal(n.Packages, []string{"hping3"}) {
		t.Errorf("%+v, %s, %+v", c.Figures(), c.Time(), n)
	}
	for text, want := range map[string]string{
		"x = 1" + took:                        "strict mode",
		took:                                  "command is missing",
		"command = []" + took:                 "command is missing",
		"command = [1]" + took:                "command is missing",
		"command = \"x\"":                     "figures is missing",
		"command = \"x\"\nseconds = 0" + took: "seconds = 0",
		"command = \"x\"\nfar_command = \"y\"" + took:                                       "far_port = 0 (write the port",
		"command = \"x\"\nfar_protocol = \"icmp\"" + took:                                   `far_protocol = "icmp"`,
		"command = \"x\"" + took + took:                                                     `figures: "took" is listed twice`,
		"command = \"x\"\n[[figures]]\nname=\"a\"\nunit=\"s\"":                              `"a" has both regex and json, or neither`,
		"command = \"x\"\n[[figures]]\nname=\"a\"\nunit=\"s\"\nregex=\"(\"":                 `"a": regex: error parsing regexp: missing closing )`,
		"command = \"x\"\n[[figures]]\nname=\"a\"\nunit=\"s\"\nregex=\"x\"":                 `"a": regex has no group (put parentheses around the number`,
		"command = \"x\"\n[[figures]]\nname=\"a\"\njson=\"x\"":                              `"a" has no unit`,
		"command = \"x\"\n[[figures]]\nunit=\"s\"\njson=\"x\"":                              "a figure has no name",
		"command = \"x\"\n[[figures]]\nname=\"a\"\nunit=\"s\"\njson=\"x\"\nbetter=\"best\"": `better = "best"`,
		"command = \"x\"\n[[figures]]\nname=\"a\"\nunit=\"s\"\njson=\"x\"\ncopies=\"max\"":  `copies = "max"`,
		"command = \"x\"\n[[figures]]\nname=\"a\"\nunit=\"s\"\njson=\"x\"\nfactor=0":        "factor = 0",
	} {
		if _, err := New(from(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestRead: any output yields a finite number or an error, and never a panic.
func TestRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "output")
		f := &figure{Name: "x", Unit: "s", JSON: rapid.StringMatching(`[a-c.#0-9@*]{1,8}`).Draw(t, "path")}
		_, _, _ = f.read(text)
		g := &figure{Name: "x", Unit: "s", Regex: "(.+)"}
		g.check(func(_, format string, args ...any) { t.Fatalf(format, args...) })
		if n, _, err := g.read(text); err == nil && (n != n || n-n != 0) {
			t.Fatalf("%q is %v", text, n)
		}
	})
}

// TestQuote: a shell returns any quoted text unchanged.
func TestQuote(t *testing.T) {
	for _, text := range []string{"", "a b", "it's", `"$x"`, "a\\b", "'''", "*", "a\nb"} {
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+shell.Quote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q came back as %q (%v)", text, out, err)
		}
	}
}

// TestCancelled: a command that is still running ends with its trial.
func TestCancelled(t *testing.T) {
	c, err := New(from("command = \"sleep 60; echo took 1\"" + took))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := c.Run(ctx, trial(t)); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 30*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}
