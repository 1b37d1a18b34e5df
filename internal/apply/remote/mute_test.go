package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/waits"
	"orrery/internal/journal"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/transport/rpc"
)

// A deaf helper greets and sends signs of life. It receives all other requests, sends what the test
// sets, and never answers.
type deaf struct {
	prepared
	asked chan string // the methods of its requests
	says  func(about string, with *rpc.ServerStream)
}

func (d deaf) ServeStream(_ context.Context, about string, with *rpc.ServerStream) error {
	var q json.RawMessage
	if err := with.Recv(&q); err != nil {
		return err
	}
	if about == greetMethod.name {
		return with.Send(map[string]any{"result": Greeting{Version: "1"}})
	}
	d.asked <- about
	if d.says != nil {
		d.says(about, with)
	}
	select {} // even if its caller is gone
}

// traitsOf returns the traits of the method called name.
func traitsOf(name string) callOptions {
	for _, m := range methods() {
		if about, how := m.about(); about == name {
			return how
		}
	}
	return callOptions{}
}

// toDeaf connects to a deaf helper. Notices for the user go to told.
func toDeaf(t *testing.T, d deaf, told func(string)) *Link {
	t.Helper()
	near, far := net.Pipe()
	go rpc.Serve(context.Background(), far, d) //nolint:errcheck // it ends with the connection
	l, err := Open(t.Context(), "sv2", near, "1", func(err error) error {
		return problem.New(problem.Failed, "host sv2: it is lost").Because(err)
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Notify(told)
	t.Cleanup(l.Close)
	return l
}

// nearby lists methods of a host that send nothing to it, or only a greeting, or that start no
// call.
var nearby = []string{"Secrets.Redact", "Nodes.Runner", "Nodes.Console", "Nodes.Screen", "Runs.LastDuration",
	"Transfers.Dial", "Runs.Clock"}

// asksHost returns all calls that send a request to a host, by name: the methods of apply.Host,
// with arbitrary arguments, and those of a Link.
func asksHost() map[string]func(ctx context.Context, l *Link) error {
	all := map[string]func(ctx context.Context, l *Link) error{
		"Inspect": func(ctx context.Context, l *Link) error { _, err := l.Inspect(ctx); return err },
		"Try":     func(ctx context.Context, l *Link) error { _, err := l.Try(ctx, nil); return err },
		"Outfit": func(ctx context.Context, l *Link) error {
			_, err := l.Outfit(ctx, nil, func(string) {})
			return err
		},
		"Measure": func(ctx context.Context, l *Link) error {
			return l.Measure(ctx, Experiment{}, func(string) error { return nil }, io.Discard)
		},
	}
	for _, subject := range reflect.VisibleFields(reflect.TypeFor[apply.Host]()) {
		for i := range subject.Type.NumMethod() {
			m := subject.Type.Method(i)
			name := subject.Name + "." + m.Name
			if subject.Type == reflect.TypeFor[apply.NearHost]() || slices.Contains(nearby, name) {
				continue
			}
			all[name] = func(ctx context.Context, l *Link) error {
				f := reflect.ValueOf(l.Host("s", nil)).FieldByIndex(subject.Index).MethodByName(m.Name)
				out := f.Call(arguments(ctx, m.Type))
				if last := out[len(out)-1]; last.Type() == reflect.TypeFor[error]() {
					err, _ := last.Interface().(error)
					return err
				}
				return nil
			}
		}
	}
	return all
}

// arguments returns arguments for a method.
func arguments(ctx context.Context, of reflect.Type) (all []reflect.Value) {
	for i := range of.NumIn() {
		switch in := of.In(i); {
		case in == reflect.TypeFor[context.Context]():
			all = append(all, reflect.ValueOf(ctx))
		case in == reflect.TypeFor[io.Reader]():
			all = append(all, reflect.ValueOf(endless{}))
		case in == reflect.TypeFor[io.ReadWriter]():
			all = append(all, reflect.ValueOf(endless{}))
		case in == reflect.TypeFor[*plan.Step]():
			all = append(all, reflect.ValueOf(&plan.Step{Kind: plan.StopNode, Node: &spec.Node{Name: "web1"}}))
		case in.Kind() == reflect.Pointer:
			all = append(all, reflect.New(in.Elem()))
		case in.Kind() == reflect.Func:
			all = append(all, reflect.MakeFunc(in, func([]reflect.Value) (zero []reflect.Value) {
				for i := range in.NumOut() {
					zero = append(zero, reflect.Zero(in.Out(i)))
				}
				return zero
			}))
		default:
			all = append(all, reflect.Zero(in))
		}
	}
	return all
}

// An endless stream never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error)  { return len(p), nil }
func (endless) Write(p []byte) (int, error) { return len(p), nil }

// shorten shortens the timeouts of calls during a test.
func shorten(t *testing.T, answer, stop, notice time.Duration) {
	t.Helper()
	old := []time.Duration{answerTimeout, stopTimeout, noticeInterval, endTimeout}
	answerTimeout, stopTimeout, noticeInterval, endTimeout = answer, stop, notice, stop
	t.Cleanup(func() { answerTimeout, stopTimeout, noticeInterval, endTimeout = old[0], old[1], old[2], old[3] })
}

const timeout = 20 * time.Second // on a busy machine

// TestEndsWithContext: every call ends soon after its context, whatever the host has sent before.
//
// Promise (Other hosts): A host that never answers holds no command: calls end with their context,
// the user is told which host it is, and a second Ctrl-C ends the program. With
// apply/remote.TestAnswersInTime, apply/remote.TestHalfCalls, apply/remote.TestNoGreeting,
// cli.TestSecondInterrupt.
func TestEndsWithContext(t *testing.T) {
	shorten(t, time.Hour, 200*time.Millisecond, time.Hour)
	drip := func(_ string, with *rpc.ServerStream) {
		for with.Send(response{Detail: "still at it"}) == nil {
			time.Sleep(time.Millisecond)
		}
	}
	waiting := func(_ string, with *rpc.ServerStream) {
		for with.Send(response{Waits: "waits for a lock: eve has it"}) == nil {
			time.Sleep(time.Millisecond)
		}
	}
	begun := []string{"Runs.Lock", "Nodes.Log"} // these calls return at the first message
	takesNoContext := []string{"Releases.Copy", "Releases.Write", "Runs.OpenJournal"}
	for what, says := range map[string]func(string, *rpc.ServerStream){"nothing": nil, "details": drip, "waits": waiting} {
		for name, call := range asksHost() {
			if slices.Contains(takesNoContext, name) {
				continue
			}
			t.Run(what+"/"+name, func(t *testing.T) {
				t.Parallel()
				d := deaf{asked: make(chan string, 1), says: says}
				l := toDeaf(t, d, func(string) {})
				ctx, cancel := context.WithCancel(waits.WithReporter(t.Context(), func(string) {}))
				ended := make(chan error, 1)
				go func() { ended <- call(ctx, l) }()
				select {
				case <-d.asked:
				case err := <-ended:
					t.Fatalf("nothing is asked: %v", err)
				}
				cancel()
				select {
				case err := <-ended:
					if err == nil && (what != "details" || !slices.Contains(begun, name)) {
						t.Error("it has succeeded")
					}
				case <-time.After(timeout):
					t.Error("it goes on")
				}
			})
		}
	}
}

// TestAnswersInTime: a call has a timeout, or the user is told which host is being waited for, or
// its caller displays its progress. If there is no answer, the error names the host and the method,
// and the connection ends.
func TestAnswersInTime(t *testing.T) {
	shorten(t, 150*time.Millisecond, 150*time.Millisecond, 10*time.Millisecond)
	for name, call := range asksHost() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := make(chan string, 100)
			d := deaf{asked: make(chan string, 1)}
			l := toDeaf(t, d, func(text string) { told <- text })
			ended := make(chan error, 1)
			go func() { ended <- call(t.Context(), l) }()
			var about string
			select {
			case about = <-d.asked:
			case err := <-ended:
				t.Fatalf("nothing is asked: %v", err)
			}
			if !traitsOf(about).displayed {
				select {
				case text := <-told:
					if !strings.Contains(text, "still waiting for host sv2: "+about+", ") {
						t.Errorf("the user is told %q", text)
					}
				case <-time.After(timeout):
					t.Errorf("nobody is told that %q is waited for", about)
				}
			}
			if traitsOf(about).long {
				return
			}
			select {
			case err := <-ended:
				if err == nil || !strings.Contains(err.Error(), "host sv2 was given up") ||
					!strings.Contains(err.Error(), `"`+about+`"`) || !errors.Is(err, ErrLost) {
					t.Errorf("it ended with %v", err)
				}
			case <-time.After(timeout):
				t.Errorf("%q is waited for without end", about)
			}
			if _, err := l.Inspect(t.Context()); !errors.Is(err, ErrLost) {
				t.Errorf("the connection goes on: %v", err)
			}
		})
	}
}

// TestWaitsGoOn: a host that reports what it is waiting for is not given up, and the user is told
// that instead of the name of the host only. Once it stops reporting, it is given up like any other
// host.
func TestWaitsGoOn(t *testing.T) {
	shorten(t, time.Second, time.Second, 300*time.Millisecond)
	for name, call := range map[string]func(ctx context.Context, h apply.Host) error{
		"Hold": func(ctx context.Context, h apply.Host) error { _, err := h.Runs.Lock(ctx, host.Holder{}); return err },
		"Mark": func(ctx context.Context, h apply.Host) error { return h.State.SetSiteID(ctx, "s") },
		"Log":  func(ctx context.Context, h apply.Host) error { _, err := h.Nodes.Log(ctx, "web1"); return err },
	} {
		for what, then := range map[string]*response{"it answers": {Result: json.RawMessage("null")}, "it is mute": nil} {
			if name == "Log" && then == nil {
				continue // it has no timeout
			}
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				says := func(_ string, with *rpc.ServerStream) {
					for range 20 {
						_ = with.Send(response{Waits: "waits for a lock: eve has it"})
						time.Sleep(100 * time.Millisecond)
					}
					if then != nil {
						_ = with.Send(then)
					}
				}
				var told, notices atomic.Int64
				l := toDeaf(t, deaf{asked: make(chan string, 1), says: says}, func(string) { notices.Add(1) })
				ctx := waits.WithReporter(t.Context(), func(text string) {
					if text == "host sv2 waits for a lock: eve has it" {
						told.Add(1)
					}
				})
				err := call(ctx, l.Host("s", nil))
				if then != nil && err != nil || then == nil && !errors.Is(err, ErrLost) {
					t.Errorf("it ended with %v", err)
				}
				if told.Load() != 20 || notices.Load() > 0 {
					t.Errorf("the user is told %d times for whom the host waits, and %d times that it is waited for", told.Load(),
						notices.Load())
				}
			})
		}
	}
}

// TestHalfCalls: calls that started well end with an error if the host then stops answering: a lock
// that is not released, a journal that confirms no entry, a stream that stalls.
func TestHalfCalls(t *testing.T) {
	begins := func(about string, with *rpc.ServerStream) {
		w := response{Detail: "held"}
		if about == logMethod.name || about == readJournalMethod.name {
			w = response{Bytes: []byte("x")}
		}
		_ = with.Send(w)
	}
	within := func(t *testing.T, what string, do func()) {
		t.Helper()
		done := make(chan struct{})
		go func() { do(); close(done) }()
		select {
		case <-done:
		case <-time.After(timeout):
			t.Errorf("%s goes on", what)
		}
	}
	begin := func(t *testing.T) (apply.Host, func() string) {
		var mutex sync.Mutex
		var told []string
		l := toDeaf(t, deaf{asked: make(chan string, 10), says: begins}, func(text string) {
			mutex.Lock()
			defer mutex.Unlock()
			told = append(told, text)
		})
		shorten(t, 150*time.Millisecond, 150*time.Millisecond, 10*time.Millisecond) // after the greeting
		return l.Host("s", nil), func() string {
			mutex.Lock()
			defer mutex.Unlock()
			return strings.Join(told, "; ")
		}
	}
	t.Run("lock", func(t *testing.T) {
		h, told := begin(t)
		letGo, err := h.Runs.Lock(t.Context(), host.Holder{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond) // a lock may be held for long
		within(t, "letting go of the lock", letGo)
		if !strings.Contains(told(), "host sv2: hold") {
			t.Errorf("the user is told %q", told())
		}
	})
	t.Run("journal", func(t *testing.T) {
		h, _ := begin(t)
		j, err := h.Runs.OpenJournal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		within(t, "an entry", func() {
			if err := j.Add(journal.Entry{}); !errors.Is(err, ErrLost) {
				t.Errorf("an entry: %v", err)
			}
			if err := j.Add(journal.Entry{}); !errors.Is(err, ErrLost) {
				t.Errorf("another: %v", err)
			}
			_ = j.Close()
		})
	})
	t.Run("streams", func(t *testing.T) {
		for what, open := range map[string]func(context.Context, apply.Host) (io.ReadCloser, error){
			"log": func(ctx context.Context, h apply.Host) (io.ReadCloser, error) { return h.Nodes.Log(ctx, "web1") },
		} {
			h, told := begin(t)
			ctx, cancel := context.WithCancel(t.Context())
			in, err := open(ctx, h)
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(100*time.Millisecond, cancel)
			within(t, what, func() {
				if text, err := io.ReadAll(in); string(text) != "x" || !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %q, %v", what, text, err)
				}
			})
			if !strings.Contains(told(), "still waiting for host sv2") {
				t.Errorf("%s: the user is told %q", what, told())
			}
			if err := in.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
				t.Error(err)
			}
		}
	})
}

// TestNoGreeting: a helper that starts and sends nothing is given up.
func TestNoGreeting(t *testing.T) {
	old := greetTimeout
	greetTimeout = 100 * time.Millisecond
	t.Cleanup(func() { greetTimeout = old })
	near, far := net.Pipe()
	go io.Copy(io.Discard, far) //nolint:errcheck // it ends with the connection
	_, err := Open(t.Context(), "sv2", near, "1", func(err error) error { return err })
	if err == nil || !strings.Contains(err.Error(), "it sent no greeting within 100ms") {
		t.Error(err)
	}
}
