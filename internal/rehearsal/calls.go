package rehearsal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
)

// maxCallBytes limits the request and the answer of a call of a supervisor. What probers have seen of 64
// hosts is the largest of them.
const maxCallBytes = 64 << 20

// calls are the calls of a supervisor: HTTP with JSON on its socket. Calls run concurrently.
type calls struct{ client http.Client }

// newCalls returns the calls of the supervisor that listens on a socket.
func newCalls(socket string) *calls {
	return &calls{http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}}
}

// call calls a method of the supervisor, and decodes its result into result, if that is not nil.
func (c *calls) call(method string, argument, result any) error {
	text, err := json.Marshal(argument)
	if err != nil {
		return err
	}
	answer, err := c.client.Post("http://keeper/"+method, "application/json", bytes.NewReader(text))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, maxCallBytes))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(string(said))
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(said, result)
}

func (c *calls) close() { c.client.CloseIdleConnections() }

// methods returns what a supervisor answers on its socket.
func (k *Supervisor) methods() http.Handler {
	mux := http.NewServeMux()
	handle(mux, "About", k.About)
	handle(mux, "Boot", k.Boot)
	handle(mux, "Cut", k.SetLinkState)
	handle(mux, "Freeze", k.Freeze)
	handle(mux, "Init", k.Init)
	handle(mux, "Kill", k.Kill)
	handle(mux, "Narrow", k.SetMTU)
	handle(mux, "Pid", k.Pid)
	handle(mux, "Slow", k.SetDiskRate)
	handle(mux, "Watch", k.Watch)
	handle(mux, "Watched", k.Watched)
	return mux
}

// handle makes a method of a supervisor callable by its name.
func handle[Q, A any](mux *http.ServeMux, method string, do func(Q, *A) error) {
	mux.HandleFunc("POST /"+method, func(w http.ResponseWriter, r *http.Request) {
		var argument Q
		if err := json.NewDecoder(io.LimitReader(r.Body, maxCallBytes)).Decode(&argument); err != nil {
			http.Error(w, "bad argument: "+err.Error(), http.StatusBadRequest)
			return
		}
		var result A
		if err := do(argument, &result); err != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, err.Error())
			return
		}
		_ = json.NewEncoder(w).Encode(result) // if that fails, the caller has gone
	})
}
