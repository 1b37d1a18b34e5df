package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"orrery/internal/host"
	"orrery/internal/journal"
	"orrery/internal/site"
)

// Deliver sends all waiting events of a site, one after the other, each within the time limit of
// its hook. It records the results in the site's journal.
func Deliver(ctx context.Context, dirs host.Dirs, key string) error {
	dir := queueDir(dirs, key)
	lock, err := host.WaitLock(ctx, filepath.Join(dir, ".lock"), host.Exclusive, "the lock of the site's hooks")
	if err != nil {
		return err
	}
	defer lock.Release()
	for ctx.Err() == nil {
		waiting, err := queuedFiles(dir)
		if err != nil || len(waiting) == 0 {
			return err
		}
		l, err := dequeue(waiting[0])
		if err != nil {
			return err
		}
		began := time.Now()
		err = send(ctx, &l.To, &l.What)
		if err := recordResult(dirs.Journal(key), &l, err, time.Since(began)); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

func recordResult(path string, l *queuedEvent, told error, took time.Duration) error {
	j, err := journal.Open(path)
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // the entry has been written by then
	result := "done"
	if told != nil {
		result = told.Error()
	}
	return j.Add(journal.Entry{
		Time: time.Now(), Run: fmt.Sprintf("%x", l.What.Time.UnixNano()), Kind: "hook",
		Step: fmt.Sprintf("hook %s: %s", l.To.Name, l.What.Event), Result: result, Seconds: took.Seconds(),
	})
}

// send sends an event to one hook.
func send(ctx context.Context, to *site.Hook, e *Event) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	ctx, stop := context.WithTimeoutCause(ctx, to.Timeout, fmt.Errorf("not done within %s", to.Timeout))
	defer stop()
	if to.URL != "" {
		err = request(ctx, to.URL, text)
	} else {
		err = run(ctx, to, text)
	}
	if late := context.Cause(ctx); err != nil && late != nil {
		return late
	}
	return err
}

// run runs the program of a hook as its user, without the caller's environment and keys.
func run(ctx context.Context, to *site.Hook, text []byte) error {
	args := []string{"env", "-i", "-C", "/", "PATH=" + host.Path, "LANG=C.UTF-8"}
	if to.User != "root" {
		args = append(args, "runuser", "-u", to.User, "--")
	}
	return host.OnLockedThread(func() error {
		if err := host.NewSessionKeyring(); err != nil {
			return err
		}
		return host.Local{Name: "host"}.Run(ctx,
			host.Command{Args: append(args, to.Command...), Stdin: bytes.NewReader(text)})
	})
}

// request posts to the URL of a hook, without following redirects. Its errors do not contain the
// URL, which may contain credentials.
func request(ctx context.Context, address string, text []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return errors.New("its url is invalid")
	}
	r.Header.Set("Content-Type", "application/json")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // the answer is not used
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("the server answered %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	return nil
}
