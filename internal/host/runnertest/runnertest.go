// Package runnertest is the test suite that every host.Runner passes.
//
// It is a package of its own because tests of several packages use it.
package runnertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	shellwords "orrery/internal/text/shell"
)

// timeout limits a command that normally ends at once.
const timeout = time.Minute

// A Fixture is the place under test.
type Fixture struct {
	Runner host.Runner
	Place  string // its name in messages
	Dir    string // a directory of that place for files
	Owner  string // owner of files, other than root, or "" if the test may not change owners
}

// Run runs the test suite with a Runner.
func Run(t *testing.T, f Fixture) {
	t.Run("streams", f.streams)
	t.Run("status", f.status)
	t.Run("output", f.output)
	t.Run("order", f.order)
	t.Run("input", f.input)
	t.Run("data", f.data)
	t.Run("interrupted", f.interrupted)
	t.Run("unwanted", f.unwanted)
	t.Run("files", f.files)
	t.Run("owners", f.owners)
}

func (f Fixture) run(t *testing.T, c host.Command) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return f.Runner.Run(ctx, c)
}

func shell(script string) host.Command { return host.Command{Args: []string{"sh", "-c", script}} }

// print returns what a script prints.
func (f Fixture) print(t *testing.T, script string) string {
	t.Helper()
	var out bytes.Buffer
	c := shell(script)
	c.Stdout = &out
	if err := f.run(t, c); err != nil {
		t.Errorf("%s: %v", script, err)
	}
	return out.String()
}

// streams tests both outputs, the environment, and that arguments arrive unchanged.
func (f Fixture) streams(t *testing.T) {
	var stdout, stderr bytes.Buffer
	c := host.Command{
		Args: []string{"sh", "-c", `printf %s "$1$WORD"; echo bad >&2`, "sh", "a b\n'\""}, Env: []string{"WORD=x=y z"},
		Stdout: &stdout, Stderr: &stderr,
	}
	if err := f.run(t, c); err != nil || stdout.String() != "a b\n'\"x=y z" || stderr.String() != "bad\n" {
		t.Errorf("%v: %q and %q", err, stdout.String(), stderr.String())
	}
}

// status tests the exit status of a command, and the end of its output.
func (f Fixture) status(t *testing.T) {
	for script, want := range map[string]int{"exit 3": 3, "exit 255": 255} {
		c := shell("echo out; echo err >&2; " + script)
		err := f.run(t, c)
		var e *host.RunError
		if !errors.As(err, &e) || e.Status != want || e.Place != f.Place || fmt.Sprint(e.Command) != fmt.Sprint(c.Args) ||
			!strings.Contains(e.Output, "out\nerr\n") {
			t.Errorf("%s: %#v", script, err)
		}
	}
}

// output tests that long output arrives completely, and that the end of unread output is kept.
func (f Fixture) output(t *testing.T) {
	const much = 3 << 20
	if got := f.print(t, fmt.Sprintf("yes abcdefg | head -c %d", much)); got != strings.Repeat("abcdefg\n", much/8) {
		t.Errorf("received %d bytes, which differ from what was sent", len(got))
	}
	err := f.run(t, shell("yes | head -c 200000; echo last; exit 1"))
	var e *host.RunError
	if !errors.As(err, &e) || !strings.HasSuffix(e.Output, "y\nlast\n") || len(e.Output) > 64<<10 {
		t.Errorf("%v", err)
	}
}

// order tests that lines of both streams keep their order if both have the same destination.
func (f Fixture) order(t *testing.T) {
	var out, want strings.Builder
	for i := range 50 {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
	}
	c := shell(`i=0; while [ $i -lt 50 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done`)
	c.Stdout, c.Stderr = &out, &out
	if err := f.run(t, c); err != nil || out.String() != want.String() {
		t.Errorf("%v: %q", err, out.String())
	}
}

// input tests that the input arrives completely, and that a command that does not read it still
// ends.
func (f Fixture) input(t *testing.T) {
	var out bytes.Buffer
	text := strings.Repeat("0123456789abcde\n", 1<<16) // 1 MiB
	if err := f.run(t, host.Command{Args: []string{"cat"}, Stdin: strings.NewReader(text), Stdout: &out}); err != nil ||
		out.String() != text {
		t.Errorf("%v: %d bytes", err, out.Len())
	}
	if err := f.run(t, host.Command{Args: []string{"true"}, Stdin: endless{}}); err != nil {
		t.Error(err)
	}
	if err := f.run(t, host.Command{Args: []string{"cat"}}); err != nil {
		t.Errorf("cat without input returns %v", err)
	}
	broken := errors.New("the other side has failed")
	if err := f.run(t, host.Command{Args: []string{"cat"}, Stdin: failing{broken}, Stdout: &out}); !errors.Is(err,
		broken) {
		t.Errorf("cat returns %v, not the error of its input", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// data tests that an error contains the command's standard error, but not the output that the
// caller reads.
func (f Fixture) data(t *testing.T) {
	var out bytes.Buffer
	c := shell("echo data; echo complaint >&2; exit 1")
	c.Stdout = &out
	if text := fmt.Sprint(f.run(t, c)); strings.Contains(text, "\n    data") || !strings.Contains(text, "complaint") ||
		out.String() != "data\n" {
		t.Errorf("%q", text)
	}
}

// interrupted tests that an interrupted command ends with all its children, and that the error has
// the cause.
func (f Fixture) interrupted(t *testing.T) {
	why := errors.New("enough of it")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	mark := fmt.Sprintf("%d.%d", time.Now().UnixNano()%1000000+1000000, 25)
	begun := &awaited{want: "begun", then: func() { cancel(why) }}
	c := shell(fmt.Sprintf("sleep %s & echo begun; sleep %s; :", mark, mark))
	c.Stdout = begun
	began := time.Now()
	err := f.Runner.Run(ctx, c)
	var e *host.RunError
	if !errors.As(err, &e) || e.Status != -1 || !errors.Is(err, why) {
		t.Errorf("%#v", err)
	}
	if took := time.Since(began); took > timeout {
		t.Errorf("it took %s", took)
	}
	for end := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		left := f.print(t, fmt.Sprintf("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c '[s]leep %s' || :",
			strings.Replace(mark, ".", "[.]", 1)))
		if strings.TrimSpace(left) == "0" {
			return
		}
		if time.Now().After(end) {
			t.Fatal("it goes on")
		}
	}
}

// awaited calls a function after a certain text was written.
type awaited struct {
	want string
	then func()
	got  bytes.Buffer
}

func (a *awaited) Write(p []byte) (int, error) {
	a.got.Write(p)
	if a.then != nil && strings.Contains(a.got.String(), a.want) {
		a.then()
		a.then = nil
	}
	return len(p), nil
}

// unwanted tests that a command ends when its output cannot be written.
func (f Fixture) unwanted(t *testing.T) {
	c := host.Command{Args: []string{"yes"}, Stdout: refusing{}}
	if err := f.run(t, c); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errors.New("no more") }

// files tests modes, links, missing parent directories, and the replacement of files.
func (f Fixture) files(t *testing.T) {
	put := func(files ...host.File) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := f.Runner.Put(ctx, files...); err != nil {
			t.Fatal(err)
		}
	}
	big := bytes.Repeat([]byte("0123456789abcde\n"), 20000)
	put(host.File{Path: f.Dir + "/a/b/plain", Content: []byte("text"), Mode: 0o640},
		host.File{Path: f.Dir + "/empty", Mode: 0o600},
		host.File{Path: f.Dir + "/with 'quotes'", Content: big, Mode: 0o4755},
		host.File{Path: f.Dir + "/link", Link: "a/b/plain"})
	put()
	got := f.print(t, "cd "+shellwords.Quote(f.Dir)+
		`; cat link; stat -c ' %a %s %n' a/b/plain empty with*; readlink link; ls -A . a/b | wc -l`)
	want := fmt.Sprintf("text 640 4 a/b/plain\n 600 0 empty\n 4755 %d with 'quotes'\na/b/plain\n8\n", len(big))
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// replaces the link itself, not its target
	put(host.File{Path: f.Dir + "/link", Content: []byte("new"), Mode: 0o644})
	if got := f.print(t, "cd "+shellwords.Quote(f.Dir)+
		`; cat a/b/plain link; stat -c ' %F' link`); got != "textnew regular file\n" {
		t.Errorf("%q", got)
	}
	err := f.Runner.Put(context.Background(), host.File{Path: f.Dir + "/empty/below", Mode: 0o644})
	if err == nil {
		t.Error("a file is put below a file")
	}
}

func (f Fixture) owners(t *testing.T) {
	if f.Owner == "" {
		t.Skip("only root gives files away")
	}
	if err := f.Runner.Put(context.Background(),
		host.File{Path: f.Dir + "/theirs", Content: []byte("x"), Owner: f.Owner, Mode: 0o4711}); err != nil {
		t.Fatal(err)
	}
	if got := f.print(t, "stat -c '%u:%g %U:%G %a' "+shellwords.Quote(f.Dir+"/theirs")); !strings.Contains(" "+got,
		" "+f.Owner+" ") || !strings.HasSuffix(got, " 4711\n") {
		t.Errorf("it belongs to %q, not to %s", got, f.Owner)
	}
}
