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
	l, err := entriesMethod.stream(ctx, f.far, runs)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close() //nolint:errcheck // it was only read
	all, wrong, _, err := journal.Scan(io.LimitReader(l, maxJournalBytes))
	if err == nil && (len(wrong) > 0 || jsonlimit.Unmarshal(l.result, &damaged) != nil) {
		// if the stream was cut off, there is no result
		err = errors.New("it sends what is none")
	}
	switch {
	case err == nil:
		return all, damaged, nil
	case errors.Is(err, ErrLost):
		return nil, nil, err
	}
	return nil, nil, problem.New(problem.Failed, "the journal of host %s cannot be read", f.at.Host).Because(err)
}

// entriesMethod sends the entries as lines, and then returns the numbers of the lines that cannot be read.
var entriesMethod = method[int, []int]{
	name: "entries", traits: traits{long: true, abandoned: true},
	answer: func(ctx context.Context, c *received, runs int) ([]int, error) {
		all, damaged, err := c.host().Runs.ReadJournal(ctx, runs)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewWriterSize(pieces{c.Caller}, maxPieceBytes)
		if err := journal.Print(lines, all); err != nil {
			return nil, err
		}
		if damaged == nil {
			damaged = []int{}
		}
		return damaged, lines.Flush()
	},
}

// pieces is a writer that sends each write as one message.
type pieces struct{ with *rpc.Caller }

func (p pieces) Write(b []byte) (int, error) { return len(b), p.with.Say(word{Bytes: b}) }

// entry is a journal entry in a message.
type entry struct {
	Entry journal.Entry `json:"entry"`
}

// A record is a journal that the helper writes.
type record struct {
	far  *far
	talk *talk
	turn chan struct{} // held while an entry is written: one at a time
}

// OpenJournal opens the journal on the remote host.
func (f runHost) OpenJournal(ctx context.Context) (apply.Journal, error) {
	t, err := journalMethod.begin(context.WithoutCancel(ctx), f.Link, f.at, none{})
	if err != nil {
		return nil, err
	}
	r := &record{f.far, t, make(chan struct{}, 1)}
	if err := r.heard(ctx); err != nil {
		t.Close()
		return nil, err
	}
	return r, nil
}

// journalMethod writes journal entries as they arrive, and confirms each one when it is written.
var journalMethod = method[none, none]{
	name: "journal",
	answer: func(ctx context.Context, c *received, _ none) (none, error) {
		j, err := c.host().Runs.OpenJournal(ctx)
		if err != nil {
			return none{}, err
		}
		defer j.Close() //nolint:errcheck // every entry has been written by then
		if err := c.Say(word{Detail: "open"}); err != nil {
			return none{}, err
		}
		for {
			var e entry
			if err := c.Hear(&e); err != nil {
				return none{}, nil //nolint:nilerr // no more come
			}
			if err := c.Say(word{Fault: faultOf(j.Add(e.Entry)), Detail: "noted"}); err != nil {
				return none{}, err
			}
		}
	},
}

// heard waits until the helper confirms a request.
func (r *record) heard(ctx context.Context) error {
	w, err := r.talk.hearOne(ctx)
	r.talk.answered()
	if err != nil {
		return err
	}
	if w.Fault != nil {
		return r.far.there(w.Fault.err())
	}
	return nil
}

// Add writes an entry and waits until the helper has confirmed it.
func (r *record) Add(e journal.Entry) error {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	r.talk.expect(answerTimeout, "has not answered")
	if err := r.talk.Say(entry{e}); err != nil {
		return r.far.lost(err)
	}
	return r.heard(context.Background())
}

// Close closes the journal.
func (r *record) Close() error {
	r.talk.stopWithin(stopTimeout)
	r.talk.Stop()
	err := r.talk.result(context.Background(), nil, nil)
	r.talk.Close()
	return err
}
