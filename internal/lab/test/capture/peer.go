package capture

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/problem"
)

// A peer is a program that runs at one end of a session: it takes lines and gives lines.
type peer struct {
	where string
	in    *os.File
	lines chan []byte
	ended chan struct{}
	err   error // how it ended, once it has
	stop  context.CancelFunc
}

// start starts a program in a place.
func start(ctx context.Context, at *place.Place, args []string) (*peer, error) {
	// A pipe of the system, and not one of this process: so nobody copies, and nobody is left waiting to copy when the program has died.
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, problem.New(problem.Failed, "no pipe to %s", args[0]).At(at.Name).Because(err)
	}
	ctx, stop := context.WithCancel(ctx)
	p := &peer{where: at.Name, in: in, lines: make(chan []byte, 64), ended: make(chan struct{}), stop: stop}
	go func() {
		defer close(p.ended)
		p.err = at.Run(ctx, host.Command{Args: args, Stdin: theirs, Stdout: host.NewLines(longest, p.heard)})
		_ = theirs.Close()
	}()
	return p, nil
}

// tell sends a line.
func (p *peer) tell(line []byte) error {
	_, err := p.in.Write(append(line, '\n'))
	if err == nil {
		return nil
	}
	select {
	case <-p.ended:
		return p.gone()
	case <-time.After(time.Second):
		return problem.New(problem.Failed, "the program takes no orders").At(p.where).Because(err)
	}
}

// answer waits for a line, and reads it as JSON.
func (p *peer) answer(ctx context.Context, most time.Duration, into any) error {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case line := <-p.lines:
		if err := json.Unmarshal(line, into); err != nil {
			return problem.New(problem.Failed, "the program answers %.100q", line).At(p.where).Because(err)
		}
		return nil
	case <-p.ended:
		return p.gone()
	case <-late.C:
		return problem.New(problem.Failed, "the program has not answered within %v", most).At(p.where).Try("is the host overloaded?")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *peer) gone() error {
	if p.err == nil {
		return problem.New(problem.Failed, "the program has ended before its time").At(p.where)
	}
	return p.err
}

// close ends the program: by the end of its input, or, if it does not heed that, by force.
func (p *peer) close() {
	_ = p.in.Close()
	select {
	case <-p.ended:
	case <-time.After(time.Second):
	}
	p.stop()
	<-p.ended
}

// longest is the length of an answer at most.
const longest = 1 << 20

// heard takes a line.
func (p *peer) heard(line []byte) error {
	select {
	case p.lines <- bytes.Clone(bytes.TrimSuffix(line, []byte("\n"))):
	default: // nobody asked for so many: the program is not the one that is meant
	}
	return nil
}
