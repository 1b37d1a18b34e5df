package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"orrery/internal/host"
)

// A teller is a node that prints its arguments and then does what it is told.
type teller struct {
	host.Runner
	then func(ctx context.Context) error
}

func (j teller) Run(ctx context.Context, c host.Command) error {
	fmt.Fprintln(c.Stdout, strings.Join(c.Args, " "))
	return j.then(ctx)
}

// TestPursuit: following continues with the release that has become live, and reports it. It does
// not matter whether the former instance continues to run.
func TestPursuit(t *testing.T) {
	for name, ends := range map[string]bool{"the former runs on": false, "the former ends": true} {
		t.Run(name, func(t *testing.T) {
			var lock sync.Mutex
			now, gone := instance{1, 0}, false
			live := func(context.Context) (instance, error) {
				lock.Lock()
				defer lock.Unlock()
				if gone {
					return instance{}, errors.New("none is live")
				}
				return now, nil
			}
			set := func(i instance, none bool) {
				lock.Lock()
				defer lock.Unlock()
				now, gone = i, none
			}
			ctx, cancel := context.WithCancel(t.Context())
			former := teller{then: func(ctx context.Context) error {
				set(instance{}, true)
				time.AfterFunc(20*time.Millisecond, func() { set(instance{2, 701}, false) })
				if ends {
					return errors.New("it ended")
				}
				<-ctx.Done()
				return ctx.Err()
			}}
			again := false
			latter := teller{then: func(ctx context.Context) error {
				if again {
					cancel()
				}
				set(instance{3, 702}, false)
				again = true
				<-ctx.Done()
				return ctx.Err()
			}}
			p := &follower{live: live, every: time.Millisecond, most: time.Minute,
				way: func() (host.Runner, error) { return latter, nil }}
			var out bytes.Buffer
			var moved []int
			p.moved = func(release int) { moved = append(moved, release) }
			if err := p.follow(ctx, former, host.Command{Args: []string{"journalctl"}, Stdout: &out}); err != nil {
				t.Error(err)
			}
			if !slices.Equal(moved, []int{701, 702}) {
				t.Errorf("it says that releases %v are live", moved)
			}
			if !strings.HasPrefix(out.String(), "journalctl\njournalctl --lines=all --since=@") {
				t.Errorf("it prints %q", out.String())
			}
		})
	}
}

// TestPursuitEnds: following ends when the node has ended, or has no journal to follow.
func TestPursuitEnds(t *testing.T) {
	broken := errors.New("no journal")
	for name, live := range map[string]func(context.Context) (instance, error){
		"there":           func(context.Context) (instance, error) { return instance{1, 0}, nil },
		"of that release": nil,
	} {
		p := &follower{live: live, every: time.Millisecond, most: time.Minute}
		if err := p.follow(t.Context(), teller{then: func(context.Context) error { return broken }},
			host.Command{Stdout: io.Discard, Stderr: io.Discard}); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	looked := 0
	gone := func(context.Context) (instance, error) {
		if looked++; looked > 1 {
			return instance{}, errors.New("gone")
		}
		return instance{1, 0}, nil
	}
	p := &follower{live: gone, every: time.Millisecond, most: 10 * time.Millisecond}
	if err := p.follow(t.Context(), teller{then: func(context.Context) error { return broken }},
		host.Command{Stdout: io.Discard, Stderr: io.Discard}); !errors.Is(err, broken) {
		t.Errorf("gone: %v", err)
	}
}
