package hook

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/journal"
	"orrery/internal/site"
	"orrery/internal/site/event"
)

// told sends an event to hooks and returns the results by the hooks' names.
func told(t *testing.T, e Event, hooks ...site.Hook) map[string]string {
	t.Helper()
	dirs := host.Dirs{State: t.TempDir()}
	s := &site.Site{Name: "karoo", Hooks: hooks}
	if _, err := Enqueue(dirs, s, e); err != nil {
		t.Fatal(err)
	}
	if err := Deliver(t.Context(), dirs, "karoo"); err != nil {
		t.Fatal(err)
	}
	entries, _, err := journal.Read(dirs.Journal("karoo"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		name, _, _ := strings.Cut(strings.TrimPrefix(e.Step, "hook "), ":")
		all[name] = e.Result
	}
	if left, err := queuedFiles(queueDir(dirs, "karoo")); len(left) > 0 || err != nil {
		t.Errorf("left are %v (%v)", left, err)
	}
	return all
}

// hookOf returns a hook that runs as the user of this test.
func hookOf(name, script string) site.Hook {
	return site.Hook{Name: name, On: event.All, Command: []string{"/bin/sh", "-c", script}, User: "root",
		Timeout: 5 * time.Second}
}

// TestCommand checks that a program gets the event as its input and nothing of this process's
// environment, and that its result is in the journal.
//
// Promise (Hooks): A hook gets the event but nothing of root's environment, ends when its time is
// up, and no command waits for it. With journal/hook.TestUser, journal/hook.TestTime,
// test.TestTrial.
func TestCommand(t *testing.T) {
	t.Setenv("SECRET_OF_ROOT", "x")
	dir := t.TempDir()
	release := 701
	silent := hookOf("silent", "touch "+dir+"/silent")
	silent.On = []string{event.BackupDone}
	all := told(t, Event{Event: event.TrialEnded, Time: time.Now(), Who: "ada", Result: "reverted",
		Why: "\x1b[2J not\nhealthy", Release: &release},
		hookOf("good", "cat > "+dir+"/event; env > "+dir+"/env; pwd > "+dir+"/pwd"),
		hookOf("bad", "echo no such pager >&2; exit 3"), silent,
		site.Hook{Name: "gone", On: event.All, Command: []string{"/no/such/program"}, User: "root", Timeout: time.Second})
	var e Event
	text, err := os.ReadFile(dir + "/event")
	if err != nil || json.Unmarshal(text, &e) != nil || e.Event != "trial-ended" || e.Site != "karoo" ||
		*e.Release != 701 || e.Who != "ada" || e.Why != "\x1b[2J not\nhealthy" {
		t.Errorf("the program was told %s (%v)", text, err)
	}
	if strings.Contains(string(text), "\x1b") || strings.Count(string(text), "\n") != 1 {
		t.Errorf("what a node has said is not shown as text: %q", text)
	}
	if env, err := os.ReadFile(dir + "/env"); err != nil || strings.Contains(string(env), "SECRET_OF_ROOT") {
		t.Errorf("the program has our environment: %s (%v)", env, err)
	}
	if pwd, _ := os.ReadFile(dir + "/pwd"); string(pwd) != "/\n" {
		t.Errorf("it runs in %s", pwd)
	}
	if _, err := os.Stat(dir + "/silent"); err == nil {
		t.Error("one is told that did not ask for it")
	}
	if all["good"] != "done" || !strings.Contains(all["bad"], "no such pager") || all["gone"] == "done" ||
		all["gone"] == "" || len(all) != 3 {
		t.Errorf("%q", all)
	}
}

// TestUser checks that a program runs as the user of its hook.
func TestUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root becomes others")
	}
	h := hookOf("who", "test $(id -un) = nobody || exit 7")
	h.User = "nobody"
	if all := told(t, Event{Event: event.BackupDone}, h); all["who"] != "done" {
		t.Errorf("%q", all)
	}
}

// TestTime checks that a program that takes too long is killed with its children, and that the next
// hook runs.
func TestTime(t *testing.T) {
	slow := hookOf("slow", "sleep 300 & sleep 300")
	slow.Timeout = 200 * time.Millisecond
	began := time.Now()
	all := told(t, Event{Event: event.BackupDone}, slow, hookOf("next", "true"))
	if took := time.Since(began); took > 8*time.Second || all["slow"] != "not done within 200ms" || all["next"] != "done" {
		t.Errorf("after %s: %q", took, all)
	}
}

// TestWebhook checks that only the hook's URL gets a request, and that the journal does not contain
// it.
//
// Promise (Hooks): A webhook posts only to the address in the site file, and the journal does not
// name it.
func TestWebhook(t *testing.T) {
	var got string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got += "elsewhere" }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/good":
			got += r.Method + " " + r.Header.Get("Content-Type") + " " + string(text)
		case "/away":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case "/slow":
			<-r.Context().Done()
		default:
			http.Error(w, "no", http.StatusForbidden)
		}
	}))
	defer server.Close()
	at := func(name string) site.Hook {
		return site.Hook{Name: name, On: event.All, URL: server.URL + "/" + name, Timeout: 300 * time.Millisecond}
	}
	nobody := site.Hook{Name: "nobody", On: event.All, URL: "http://127.0.0.1:1/token-of-ours", Timeout: time.Second}
	all := told(t, Event{Event: event.MirrorFailed, Volume: "data"}, at("good"), at("away"), at("slow"), at("forbidden"),
		nobody)
	if !strings.HasPrefix(got, `POST application/json {"event":"mirror-failed"`) || strings.Contains(got, "elsewhere") {
		t.Errorf("got %s", got)
	}
	if all["good"] != "done" || !strings.Contains(all["away"], "307") || all["slow"] != "not done within 300ms" ||
		!strings.Contains(all["forbidden"], "403") ||
		all["nobody"] == "done" || strings.Contains(all["nobody"], "token-of-ours") {
		t.Errorf("%q", all)
	}
}

// TestPost checks that twins store no events, and that the number of waiting events is limited.
//
// Promise (Hooks): Twins run no hooks and have no schedules. With site/twin.TestNoHooks.
func TestPost(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir()}
	s := &site.Site{Name: "karoo", Twin: "dev", Hooks: []site.Hook{hookOf("x", "true")}}
	if some, err := Enqueue(dirs, s, Event{Event: event.BackupDone}); some || err != nil {
		t.Errorf("a twin tells: %v, %v", some, err)
	}
	s.Twin = ""
	if some, err := Enqueue(dirs, s, Event{Event: "unknown"}); some || err != nil {
		t.Errorf("%v, %v", some, err)
	}
	for i := range maxQueued + 1 {
		some, err := Enqueue(dirs, s, Event{Event: event.BackupDone, Why: strings.Repeat("x", 1<<20)})
		if (err == nil) != (i < maxQueued) || some != (i < maxQueued) {
			t.Fatalf("letter %d: %v, %v", i, some, err)
		}
	}
	waiting, err := queuedFiles(queueDir(dirs, "karoo"))
	if err != nil || len(waiting) != maxQueued {
		t.Fatalf("%d wait (%v)", len(waiting), err)
	}
	if info, err := os.Stat(waiting[0]); err != nil || info.Size() > 2*maxReasonBytes || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(queueDir(dirs, "karoo"), "0.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Deliver(t.Context(), dirs, "karoo"); err == nil { // the next call continues after it
		t.Error("a letter is read that is none")
	}
	if waiting, _ := queuedFiles(queueDir(dirs, "karoo")); len(waiting) != maxQueued {
		t.Errorf("%d wait", len(waiting))
	}
}
