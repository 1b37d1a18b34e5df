package remote

import (
	"context"
	"errors"
	"io"

	"orrery/internal/apply"
	"orrery/internal/journal"
	"orrery/internal/jsonlimit"
	"orrery/internal/problem"
)

// Entries gives what the journal has. It comes as lines, which are read as those of a file that anybody may have written.
func (f *far) Entries(ctx context.Context, runs int) (all []journal.Entry, damaged []int, err error) {
	q := f.q()
	q.Runs = runs
	l, err := f.stream(ctx, toRecount, q)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close() //nolint:errcheck // it was only read
	all, wrong, _, err := journal.Scan(io.LimitReader(l, mostOfAJournal))
	if err == nil && (len(wrong) > 0 || jsonlimit.Unmarshal(l.result, &damaged) != nil) { // if it was cut off, there is no result
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

// entry is one of a journal, on its way.
type entry struct {
	Entry journal.Entry `json:"entry"`
}

// A record is a journal that the helper writes.
type record struct {
	far  *far
	talk *talk
	turn chan struct{} // entries are written one after the other
}

// Journal opens the journal.
func (f *far) Journal() (apply.Journal, error) {
	t, err := f.begin(context.Background(), toNote, f.q())
	if err != nil {
		return nil, err
	}
	r := &record{f, t, make(chan struct{}, 1)}
	if err := r.heard(); err != nil {
		t.Close()
		return nil, err
	}
	return r, nil
}

// heard waits until something has been done.
func (r *record) heard() error {
	w, err := r.talk.hearOne(context.Background())
	r.talk.answered()
	if err != nil {
		return err
	}
	if w.Fault != nil {
		return r.far.there(w.Fault.err())
	}
	return nil
}

// Add adds an entry.
func (r *record) Add(e journal.Entry) error {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	r.talk.expect(answerTimeout, "has not answered")
	if err := r.talk.Say(entry{e}); err != nil {
		return r.far.lost(err)
	}
	return r.heard()
}

// Close closes it.
func (r *record) Close() error {
	r.talk.stopWithin(stopTimeout)
	r.talk.Stop()
	err := r.talk.result(context.Background(), nil, nil)
	r.talk.Close()
	return err
}
