package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/apply/remote"
	"orrery/internal/host"
	"orrery/internal/secret"
	"orrery/internal/transport/rpc"
	"orrery/internal/volume"
)

// A liar is a helper that sends whatever a test sets.
type liar struct {
	host.Local
	says map[string][]any // by method
}

func (l liar) ServeStream(_ context.Context, about string, with *rpc.ServerStream) error {
	var q json.RawMessage
	if err := with.Recv(&q); err != nil {
		return err
	}
	for _, each := range l.says[about] {
		if err := with.Send(each); err != nil {
			return err
		}
	}
	return nil
}

type said = map[string]any

// lied connects to a helper that answers one method with arbitrary messages.
func lied(t *testing.T, about string, says ...any) *remote.Link {
	t.Helper()
	near, far := net.Pipe()
	go func() {
		_ = rpc.Serve(context.Background(), far,
			liar{says: map[string][]any{"greet": {said{"result": said{"version": "1"}}}, about: says}})
	}()
	l, err := remote.Open(t.Context(), "sv2", near, "1", func(err error) error { return fmt.Errorf("host sv2: %w", err) })
	must(t, err)
	t.Cleanup(l.Close)
	return l
}

// TestLongAnswers: an answer that is longer than allowed is not read to its end.
func TestLongAnswers(t *testing.T) {
	long := func(n int) any { return said{"result": said{"id": strings.Repeat("x", n)}} }
	if _, err := lied(t, "releases", long(1<<19)).Host("s", nil).Releases.Read(t.Context()); err != nil {
		t.Errorf("a long answer: %v", err)
	}
	if _, err := lied(t, "releases", long(1<<20)).Host("s", nil).Releases.Read(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "sv2") {
		t.Errorf("one that is too long: %v", err)
	}
	names := func(n int) any { return said{"result": said{"names": strings.Repeat("x", n)}} }
	if _, err := lied(t, "observe", names(15<<20)).Host("s", nil).State.Observe(t.Context(), nil); err != nil {
		t.Errorf("what thousands of nodes are: %v", err)
	}
	if _, err := lied(t, "observe", names(16<<20)).Host("s", nil).State.Observe(t.Context(), nil); err == nil ||
		!strings.Contains(err.Error(), "sv2") {
		t.Errorf("what is too much of them: %v", err)
	}
}

// TestHostileJournal: the journal of another host is parsed line by line, any of which may be
// invalid, and only up to its maximum size.
func TestHostileJournal(t *testing.T) {
	bytes := func(text string) any { return said{"bytes": []byte(text)} }
	const good = `{"kind":"begin","run":"1","hosts":["sv1"]}` + "\n"
	all, _, err := lied(t, "entries", bytes(good), said{"result": []int{3}}).Host("s", nil).
		Runs.ReadJournal(t.Context(), 0)
	if err != nil || len(all) != 1 || all[0].Hosts != nil {
		t.Errorf("a good journal: %v, %v", all, err)
	}
	for what, says := range map[string][]any{
		"no JSON":            {bytes("nothing\n"), said{"result": []int{}}},
		"a line without end": {bytes(strings.Repeat("x", 2<<20)), said{"result": []int{}}},
		"no result":          {bytes(good)},
		"another result":     {bytes(good), said{"result": "yes"}},
		"no bytes":           {said{"bytes": 7}},
	} {
		if all, _, err := lied(t, "entries", says...).Host("s", nil).Runs.ReadJournal(t.Context(), 0); err == nil ||
			!strings.Contains(err.Error(), "sv2") || len(all) > 0 {
			t.Errorf("%s: %d entries, %v", what, len(all), err)
		}
	}
}

// TestHostileRecords: a host must describe as many layers as were requested.
func TestHostileRecords(t *testing.T) {
	for what, says := range map[string]any{"too few": []any{}, "too many": []any{said{}, said{}}, "none": "x"} {
		if all, err := lied(t, "describe", said{"result": says}).Host("s", nil).Layers.Describe(t.Context(),
			[]string{"a"}); err == nil || len(all) > 0 {
			t.Errorf("%s: %v, %v", what, all, err)
		}
	}
}

// TestHostileSecret: a generated secret of another host is used by nodes of other hosts, so it must
// consist of allowed characters.
func TestHostileSecret(t *testing.T) {
	read := func(says any) (secret.Stored, error) {
		return lied(t, "secret", said{"result": says}).Host("s", nil).Secrets.Read(t.Context(), "db")
	}
	good := said{"value": "abcDEF123", "generation": 3}
	if s, err := read(good); s != (secret.Stored{Value: "abcDEF123", Generation: 3}) || err != nil {
		t.Errorf("a good one: %+v, %v", s, err)
	}
	for what, value := range map[string]any{
		"nothing": "", "a line": "abcDEF123\nroot::0:0", "a quote": "abc'DEF", "a control character": "abc\x1b[2J",
		"too much": strings.Repeat("a", 16<<10+1), "a number": 7, "an umlaut": "abcDEFä", "a colon": "abc:DEF",
		"PEM that is not base64": "pem:a\nb",
	} {
		if s, err := read(said{"value": value, "generation": 1}); err == nil || s.Value != "" {
			t.Errorf("%s: %+v, %v", what, s, err)
		}
	}
	for what, generation := range map[string]any{
		"none": nil, "zero": 0, "negative": -1, "too much": 1 << 40, "text": "3",
	} {
		if s, err := read(said{"value": "abcDEF123", "generation": generation}); err == nil || s.Value != "" {
			t.Errorf("%s: %+v, %v", what, s, err)
		}
	}
}

// TestHostileSnapshots: snapshots of another host are displayed, and their ids become names of
// directories on other hosts, so they are checked.
func TestHostileSnapshots(t *testing.T) {
	kept := func(s said) any { return said{"result": said{"kept": []any{s}}} }
	all, _, err := lied(t, "snapshots",
		kept(said{"id": "20260730-120000", "who": "ada\x1b[2J", "site": "other",
			"nodes": []any{said{"record": said{"name": "web1"}}}})).Host("s", nil).Snapshots.List(t.Context())
	if err != nil || len(all) != 1 || strings.Contains(all[0].Who, "\x1b") || all[0].Site != "s" {
		t.Errorf("a good one: %+v, %v", all, err)
	}
	for what, says := range map[string]any{
		"a path": kept(said{"id": "../../x"}), "a hidden one": kept(said{"id": ".x"}), "no name": kept(said{}),
		"no node": kept(said{"id": "x", "nodes": []any{said{}}}),
		"nothing": said{"result": said{"kept": []any{nil}}}, "ready is a path": said{"result": said{"ready": []any{"a/b"}}},
	} {
		if all, ready, err := lied(t, "snapshots", says).Host("s", nil).Snapshots.List(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "sv2") || all != nil || ready != nil {
			t.Errorf("%s: %v, %v, %v", what, all, ready, err)
		}
	}
	if id, _, err := lied(t, "restoring", said{"result": said{"id": "../x"}}).Host("s",
		nil).Snapshots.Restoring(t.Context()); err == nil {
		t.Errorf("a restoring of %q", id)
	}
	if err := lied(t, "put back", said{"result": nil}, said{"result": 1}).Host("s", nil).Snapshots.Restore(t.Context(),
		"x", nil, func(apply.RestoreFailures) error { return nil }); err == nil {
		t.Error("nodes were put back, and nobody was asked whether they stay")
	}
}

// TestHostileVolumes: descriptions of volumes are sanitized, and must match the requested volumes.
func TestHostileVolumes(t *testing.T) {
	of := []apply.Directory{{Node: "web1"}}
	all, err := lied(t, "volumes", said{"result": []any{said{"path": "/x\x1b[2J", "last": said{"problem": "a\nb"}}}}).
		Host("s", nil).Volumes.Describe(t.Context(), of)
	if err != nil || len(all) != 1 || strings.ContainsAny(all[0].Path+all[0].Last.Problem, "\x1b\n") {
		t.Errorf("told is %+v, %v", all, err)
	}
	for what, says := range map[string]any{"none": []any{}, "two": []any{said{}, said{}}, "a word": "x"} {
		if all, err := lied(t, "volumes", said{"result": says}).Host("s", nil).Volumes.Describe(t.Context(), of); err == nil {
			t.Errorf("%s: %v", what, all)
		}
		if all, err := lied(t, "verify", said{"result": says}).Host("s", nil).Volumes.Verify(t.Context(), of); err == nil {
			t.Errorf("%s: %v", what, all)
		}
	}
	var told []volume.MirrorStatus
	made := said{"progress": said{"mirrored": said{"volume": "v\x1b", "problem": "p"}}}
	err = lied(t, "mirror", made, made, made, said{"result": nil}, said{"result": 1}).Host("s", nil).
		Volumes.Mirror(t.Context(), of, apply.MirrorRun{}, func(m volume.MirrorStatus) { told = append(told, m) })
	if err != nil || len(told) != 1 || strings.Contains(told[0].Volume, "\x1b") {
		t.Errorf("told is %+v, %v", told, err)
	}
}
