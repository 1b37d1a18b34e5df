package remote

import (
	"bufio"
	"context"
	"errors"
	"io"

	"orrery/internal/apply"
	"orrery/internal/journal"
	"orrery/internal/problem"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/transport/rpc"
)

// ReadJournal returns the entries of the remote host's journal. They arrive as lines and are parsed
// with the same care as a file of unknown origin.
func (f runHost) ReadJournal(ctx context.Context, runs int) (all []journal.Entry, damaged []int, err error) {
	l, err := readJournalMethod.stream(ctx, f.remoteHost, runs)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close() //nolint:errcheck // it was only read
	all, wrong, _, err := journal.Decode(io.LimitReader(l, maxJournalBytes))
	if err == nil && (len(wrong) > 0 || jsonlimit.Unmarshal(l.result, &damaged) != nil) {
		// if the stream was cut off, there is no result
		err = errors.New("invalid journal data")
	}
	switch {
	case err == nil:
		return all, damaged, nil
	case errors.Is(err, ErrLost):
		return nil, nil, err
	}
	return nil, nil, problem.New(problem.Failed, "the journal of host %s cannot be read", f.at.Host).Because(err)
}

// readJournalMethod sends the entries as lines, and then returns the numbers of the lines that cannot be read.
var readJournalMethod = method[int, []int]{
	name: "entries", callOptions: callOptions{long: true, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, runs int) ([]int, error) {
		all, damaged, err := c.host().Runs.ReadJournal(ctx, runs)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewWriterSize(pieceWriter{c.ServerStream}, maxPieceBytes)
		if err := journal.Encode(lines, all); err != nil {
			return nil, err
		}
		if damaged == nil {
			damaged = []int{}
		}
		return damaged, lines.Flush()
	},
}

// pieceWriter is a writer that sends each write as one message.
type pieceWriter struct{ with *rpc.ServerStream }

func (p pieceWriter) Write(b []byte) (int, error) { return len(b), p.with.Send(response{Bytes: b}) }

// journalEntry is a journal entry in a message.
type journalEntry struct {
	Entry journal.Entry `json:"entry"`
}

// A journalWriter is a journal that the helper writes.
type journalWriter struct {
	host *remoteHost
	talk *clientCall
	turn chan struct{} // held while an entry is written: one at a time
}

// OpenJournal opens the journal on the remote host.
func (f runHost) OpenJournal(ctx context.Context) (apply.Journal, error) {
	t, err := journalMethod.begin(context.WithoutCancel(ctx), f.Link, f.at, none{})
	if err != nil {
		return nil, err
	}
	r := &journalWriter{f.remoteHost, t, make(chan struct{}, 1)}
	if err := r.awaitConfirmation(ctx); err != nil {
		t.Close()
		return nil, err
	}
	return r, nil
}

// journalMethod writes journal entries as they arrive, and confirms each one when it is written.
var journalMethod = method[none, none]{
	name: "journal",
	answer: func(ctx context.Context, c *serverCall, _ none) (none, error) {
		j, err := c.host().Runs.OpenJournal(ctx)
		if err != nil {
			return none{}, err
		}
		defer j.Close() //nolint:errcheck // every entry has been written by then
		if err := c.Send(response{Detail: "open"}); err != nil {
			return none{}, err
		}
		for {
			var e journalEntry
			if err := c.Recv(&e); err != nil {
				return none{}, nil //nolint:nilerr // no more come
			}
			if err := c.Send(response{Fault: toWireError(j.Add(e.Entry)), Detail: "noted"}); err != nil {
				return none{}, err
			}
		}
	},
}

// awaitConfirmation waits until the helper confirms a request.
func (r *journalWriter) awaitConfirmation(ctx context.Context) error {
	w, err := r.talk.recvOne(ctx)
	r.talk.answered()
	if err != nil {
		return err
	}
	if w.Fault != nil {
		return r.host.withHostName(w.Fault.toError())
	}
	return nil
}

// Add writes an entry and waits until the helper has confirmed it.
func (r *journalWriter) Add(e journal.Entry) error {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	r.talk.expect(answerTimeout, "did not answer")
	if err := r.talk.Send(journalEntry{e}); err != nil {
		return r.host.lost(err)
	}
	return r.awaitConfirmation(context.Background())
}

// Close closes the journal.
func (r *journalWriter) Close() error {
	r.talk.stopWithin(stopTimeout)
	r.talk.Stop()
	err := r.talk.result(context.Background(), nil, nil)
	r.talk.Close()
	return err
}
