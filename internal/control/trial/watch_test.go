package trial

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"orrery/internal/observe"
	"orrery/internal/problem"
)

// A stage is a host in memory with a release on trial. Its clock advances while the watch waits,
// and events happen at given rounds.
type stage struct {
	observe.Releases
	now    observe.Timestamp
	sick   func() (string, error)
	refuse int // number of attempts to end the trial that fail
	unread int // number of attempts to read the records that fail
	rounds int
	said   []error
	events map[int]func() // before a round
	waited []time.Duration
}

func onTrial(within time.Duration) *stage {
	s := &stage{now: observe.Timestamp{Calendar: time.Unix(1e9, 0), Boot: "this", Since: time.Hour},
		sick: func() (string, error) { return "", nil }}
	s.Trial = &observe.Trial{Release: 701, Back: map[string]int{"web": 0}, Within: within}
	s.Trial.SetDeadline(s.now, within)
	return s
}

// watch runs a watch to its end without an error. It must come within an hour of the stage's time.
func (s *stage) watch(t *testing.T) observe.Releases {
	t.Helper()
	r, err := s.run(t, false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs a watch to its end.
func (s *stage) run(t *testing.T, giveUp bool) (observe.Releases, error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	end := func(result, why string) error {
		if s.refuse--; s.refuse >= 0 {
			return problem.New(problem.Reverted, "the switch failed; all are back at release 701")
		}
		s.Ended, s.Trial = EndRecord(s.Trial, result, why), nil
		if result == observe.Reverted {
			return problem.New(problem.Reverted, "it has gone back")
		}
		return nil
	}
	w := &Watch{
		GiveUp: giveUp,
		Look: func() (observe.Releases, error) {
			if s.unread--; s.unread >= 0 {
				return observe.Releases{}, errors.New("too many open files")
			}
			return s.Releases, nil
		},
		Lives: func(pid int) bool { return pid == 1 },
		Sick: func(context.Context, []string) (string, error) {
			s.rounds++
			if do := s.events[s.rounds]; do != nil {
				do()
			}
			return s.sick()
		},
		Confirm: func(context.Context) error { return end(observe.Confirmed, "its health checks held") },
		GoBack:  func(_ context.Context, why string) error { return end(observe.Reverted, why) },
		Now:     func() observe.Timestamp { return s.now },
		Wait: func(_ context.Context, d time.Duration) {
			s.waited = append(s.waited, d)
			s.now.Since += d
			s.now.Calendar = s.now.Calendar.Add(d)
			if s.now.Since > 2*time.Hour {
				cancel(errors.New("it watches and watches"))
			}
		},
		Say: func(err error) { s.said = append(s.said, err) },
	}
	return w.Run(ctx)
}

func (s *stage) want(t *testing.T, result, why string) {
	t.Helper()
	r := s.watch(t)
	if r.Trial != nil || r.Ended == nil || r.Ended.Result != result || r.Ended.Why != why {
		t.Errorf("it ended with %+v", r.Ended)
	}
}

// TestShortTrial: however short a trial is, its checks run before it is confirmed.
func TestShortTrial(t *testing.T) {
	s := onTrial(time.Nanosecond)
	s.now.Since += time.Minute // nothing was checked until long after its time
	s.want(t, observe.Confirmed, "its health checks held")
	if s.rounds != 1 {
		t.Errorf("the checks were tried %d times", s.rounds)
	}
	s = onTrial(time.Nanosecond)
	s.sick = func() (string, error) { return "node web is running, unhealthy", nil }
	s.want(t, observe.Reverted, "node web is running, unhealthy")
	if s.rounds != MaxFailures {
		t.Errorf("it went back after %d rounds", s.rounds)
	}
}

// TestClockSet: setting the host's clock makes a trial neither longer nor shorter.
func TestClockSet(t *testing.T) {
	for _, by := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		s := onTrial(time.Minute)
		begun := s.now.Since
		s.events = map[int]func(){3: func() { s.now.Calendar = s.now.Calendar.Add(by) }}
		s.want(t, observe.Confirmed, "its health checks held")
		if took := s.now.Since - begun; took < time.Minute || took > time.Minute+2*heartbeat {
			t.Errorf("with the clock set by %s the trial of a minute took %s", by, took)
		}
	}
}

// TestByHand: passing checks do not confirm a release that must be confirmed by hand.
func TestByHand(t *testing.T) {
	s := onTrial(time.Minute)
	s.Trial.ByHand = true
	s.want(t, observe.Reverted, "it was not confirmed")
	s = onTrial(time.Minute)
	s.Trial.ByHand = true
	s.events = map[int]func(){5: func() { s.Ended, s.Trial = EndRecord(s.Trial, observe.Confirmed, "by hand"), nil }}
	s.sick = func() (string, error) { return "", nil }
	s.want(t, observe.Confirmed, "by hand")
}

// TestStubbornWatch: no error ends a watch. What fails is repeated at growing intervals, until the
// trial is over.
func TestStubbornWatch(t *testing.T) {
	s := onTrial(10 * time.Minute)
	s.unread = 3
	s.events = map[int]func(){4: func() { s.unread = 2 }, 9: func() {
		s.sick = func() (string, error) { return "", errors.New("no engine answers") }
		s.refuse = 8
	}}
	s.want(t, observe.Reverted, "the state of its nodes is unknown: no engine answers")
	if s.refuse != -1 {
		t.Errorf("left to refuse: %d", s.refuse)
	}
	if len(s.said) < 13 {
		t.Errorf("said was %v", s.said)
	}
	longest := time.Duration(0)
	for _, d := range s.waited {
		longest = max(longest, d)
	}
	if longest != maxRetryPause {
		t.Errorf("the longest pause was %s", longest)
	}
}

// TestGiveUp: a watch for which a user waits ends with the first error.
func TestGiveUp(t *testing.T) {
	s := onTrial(0)
	s.sick = func() (string, error) { return "it ended while no process watched it", nil }
	s.refuse = 1
	_, err := s.run(t, true)
	if err == nil || !strings.Contains(err.Error(), "the switch failed") || s.Trial == nil {
		t.Errorf("it ended with %v, %+v", err, s.Ended)
	}
	if _, err := s.run(t, true); err != nil || s.Ended == nil || s.Ended.Result != observe.Reverted {
		t.Errorf("the second time it ended with %v, %+v", err, s.Ended)
	}
}

// TestAwaitSwitch: a watch begins before the switch that it waits for, and ends if that switch was
// killed.
func TestAwaitSwitch(t *testing.T) {
	s := onTrial(time.Minute)
	trial := s.Trial
	s.Trial, s.Switch = nil, &observe.Switch{Pid: 2}
	if r := s.watch(t); r.Switch == nil || s.rounds != 0 {
		t.Errorf("of a switch that was killed: %+v after %d rounds", r, s.rounds)
	}
	s.Switch.Pid = 1
	w := &Watch{
		Look:  func() (observe.Releases, error) { return s.Releases, nil },
		Lives: func(int) bool { return true },
		Wait:  func(context.Context, time.Duration) { s.Trial, s.Switch = trial, nil },
	}
	if over, err := w.awaitSwitch(t.Context(), s.Releases); over || err != nil || s.Trial == nil {
		t.Errorf("of a switch that goes on: %v, %v", over, err)
	}
}
