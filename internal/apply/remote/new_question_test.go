package remote

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/transport/rpc"
)

// leapMethod is a method that exists only in this test: it returns when a host will have a leap
// second.
var leapMethod = method[int, string]{
	name: "leap second", callOptions: callOptions{maxBytes: 100},
	answer: func(_ context.Context, _ *serverCall, year int) (string, error) {
		if year < 1972 {
			return "", problem.New(problem.Mistake, "there were none in %d", year).Try("ask for 1972")
		}
		return strings.Repeat("-", year-1972) + "06-30", nil
	},
}

// TestNewQuestion: a new method needs one declaration, and an entry in the list of methods. Its
// errors arrive unchanged, and its limits hold.
func TestNewQuestion(t *testing.T) {
	here, peer := net.Pipe()
	h := newHelper(nil, Greeting{Version: "1"})
	h.methods[leapMethod.name] = &leapMethod
	served := make(chan error, 1)
	go func() { served <- rpc.Serve(t.Context(), peer, h) }()
	l, err := Open(t.Context(), "sv2", here, "1", func(err error) error { return err })
	if err != nil {
		t.Fatal(err)
	}
	if day, err := leapMethod.ask(t.Context(), l, callTarget{}, 1972, nil); err != nil || day != "06-30" {
		t.Errorf("it is %q, %v", day, err)
	}
	_, err = leapMethod.ask(t.Context(), l, callTarget{}, 1905, nil)
	var p *problem.Problem
	if !errors.As(err, &p) || p.Kind != problem.Mistake || p.Cure != "ask for 1972" {
		t.Errorf("an error arrives as %v", err)
	}
	if day, err := leapMethod.ask(t.Context(), l, callTarget{}, 2972, nil); err == nil {
		t.Errorf("an answer of %d bytes was taken", len(day))
	}
	l.Close()
	<-served
}
