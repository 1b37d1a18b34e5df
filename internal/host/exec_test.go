package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// TestExecLeavesDaemons checks that a run does not wait for a daemon that the command left behind
// and that holds its output.
//
// Promise (What others print and answer): A daemon that a step leaves behind delays no caller. With
// test.TestSpeech.
func TestExecLeavesDaemons(t *testing.T) {
	t.Parallel()
	daemon := Command{Args: []string{"sh", "-c", "echo begun; sleep 60 & exit 0"}}
	for _, c := range []struct {
		name   string
		stdout bool
		status string
		limit  time.Duration // timeout of ctx
		within time.Duration
		want   string // part of the error
	}{
		{"a success", true, "0", time.Minute, 10 * time.Second, ""},
		{"a success that prints to nobody", false, "0", time.Minute, 10 * time.Second, ""},
		{"a failure", true, "3", time.Minute, 10 * time.Second, "exit status 3"},
		{"a timeout", true, "wait", 300 * time.Millisecond, 10 * time.Second, "context deadline exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), c.limit)
			defer cancel()
			var out bytes.Buffer
			command := daemon
			// The daemon has a session of its own, so killing the command's process group does not
			// kill it.
			command.Args = []string{"sh", "-c", "echo begun; setsid sleep 60 & " + map[bool]string{true: "sleep 60",
				false: "exit " + c.status}[c.status == "wait"]}
			if c.stdout {
				command.Stdout, command.Stderr = &out, &out
			}
			began := time.Now()
			err := Local{Name: "host"}.Run(ctx, command)
			if took := time.Since(began); took > c.within {
				t.Errorf("it took %s", took)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if c.stdout && out.String() != "begun\n" {
				t.Errorf("it printed %q", out.String())
			}
		})
	}
}

// slow is a writer that first blocks for some time, like a pager.
type slow struct {
	bytes.Buffer
	once time.Duration
}

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(s.once)
	s.once = 0
	return s.Buffer.Write(p)
}

// TestExecLosesNothing checks that no output of a command is lost with a slow reader, even if a
// daemon holds the pipe.
func TestExecLosesNothing(t *testing.T) {
	t.Parallel()
	const size = 60 << 10 // less than the capacity of a pipe: the command ends before anything is read
	for _, script := range []string{
		fmt.Sprintf("yes | head -c %d", size),
		fmt.Sprintf("yes | head -c %d; sleep 60 & exit 0", size),
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			out := &slow{once: 2 * outputGrace}
			if err := (Local{}).Run(context.Background(), Command{Args: []string{"sh", "-c", script}, Stdout: out}); err != nil {
				t.Error(err)
			}
			if out.Len() != size {
				t.Errorf("%d bytes came", out.Len())
			}
		})
	}
}

// stuck is a writer that blocks.
type stuck struct{ ever chan bool }

func (s stuck) Write([]byte) (int, error) { <-s.ever; return 0, io.ErrClosedPipe }

// TestExecStuckReader checks that a run ends after an interrupt even if the writer of its output
// blocks.
func TestExecStuckReader(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	s := stuck{make(chan bool)}
	defer close(s.ever)
	began := time.Now()
	if err := (Local{}).Run(ctx, Command{Args: []string{"yes"}, Stdout: s}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestExecInput checks input that never ends, and input that fails.
func TestExecInput(t *testing.T) {
	t.Parallel()
	never, hold := io.Pipe()
	defer hold.Close()
	took := time.Hour
	for range 5 { // retry, because a busy machine may be slow
		began := time.Now()
		if err := (Local{}).Run(context.Background(), Command{Args: []string{"true"}, Stdin: never}); err != nil {
			t.Error(err)
		}
		if took = min(took, time.Since(began)); took < 2*time.Second {
			break
		}
	}
	if took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
	broken, breaks := io.Pipe()
	breaks.CloseWithError(errors.New("the other end has failed"))
	err := Local{}.Run(context.Background(), Command{Args: []string{"cat"}, Stdin: broken})
	if err == nil || !strings.Contains(err.Error(), "the other end has failed") {
		t.Errorf("of input that failed: %v", err)
	}
}

// TestExecOrder checks that lines of both streams keep their order if both have the same
// destination.
func TestExecOrder(t *testing.T) {
	t.Parallel()
	var out, want strings.Builder
	for i := range 50 {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
	}
	script := `i=0; while [ $i -lt 50 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done`
	if err := (Local{}).Run(context.Background(),
		Command{Args: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out}); err != nil ||
		out.String() != want.String() {
		t.Errorf("%v: %q", err, out.String())
	}
}

// TestExecData checks that an error contains the command's standard error, but not the output that
// the caller reads.
func TestExecData(t *testing.T) {
	t.Parallel()
	err := Local{Name: "host"}.Run(context.Background(),
		Command{Args: []string{"sh", "-c", "echo data; echo complaint >&2; exit 1"}, Stdout: io.Discard})
	if text := fmt.Sprint(err); strings.Contains(text, "\n    data") || !strings.Contains(text, "complaint") {
		t.Errorf("%q", text)
	}
}
