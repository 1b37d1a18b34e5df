package prove

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/problem"
)

// Verb is the hidden verb of orrery-lab that works for a load in a node's control group.
const Verb = "load"

// An order describes the load that the child produces until its standard input ends.
type order struct {
	Spin    int     `json:"spin,omitempty"`  // threads that use processors
	Write   bool    `json:"write,omitempty"` // to the file 3, instead of reading from it
	Block   int     `json:"block,omitempty"` // bytes of each request
	Threads int     `json:"threads,omitempty"`
	Rate    float64 `json:"rate,omitempty"`   // requests per second of all threads
	Random  bool    `json:"random,omitempty"` // requests at random places
	Seconds float64 `json:"seconds"`          // the load ends then, even if its parent does not end it
}

// done is what the child prints when it ends.
type done struct {
	Requests int64 `json:"requests"`
}

// lifetime returns after how many seconds a load ends if its parent has not ended it. The longest use
// is beside the measurement of a neighbour.
func lifetime(seconds float64) float64 { return 2*seconds + 30 }

const (
	loadFile = 3 // descriptor of the file
	fileSize = 64 << 20
	maxBlock = 1 << 20
	// maxSeconds is the longest that a load lives, whatever its parent orders.
	maxSeconds = 3600
)

// Work is the child's main function: it follows the order on its standard input until that ends.
func Work(in io.Reader, out io.Writer) error {
	const maxOrderBytes = 1 << 12
	decoder := json.NewDecoder(io.LimitReader(in, maxOrderBytes))
	var o order
	if err := decoder.Decode(&o); err != nil {
		return problem.New(problem.Usage, "standard input has no order for a load").Because(err)
	}
	// If the node's memory is used up, the kernel ends this process, and none of the node's own.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return problem.New(problem.Failed, "no load without a score for a lack of memory").Because(err)
	}
	var quit atomic.Bool
	var requests atomic.Int64
	var workers sync.WaitGroup
	errs := make(chan error, 1)
	if o.Spin > 0 {
		runtime.GOMAXPROCS(o.Spin + 1)
	}
	for range o.Spin {
		workers.Go(func() {
			for x := uint64(1); !quit.Load(); x = x*2862933555777941757 + 3037000493 {
				runtime.KeepAlive(x)
			}
		})
	}
	if o.Block > 0 {
		for range max(o.Threads, 1) {
			workers.Go(func() {
				if err := o.requests(&quit, &requests); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			})
		}
	}
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in) // until the parent closes it, or is killed
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Duration(min(o.Seconds, maxSeconds) * float64(time.Second))):
	}
	quit.Store(true)
	workers.Wait()
	select {
	case err := <-errs:
		return problem.New(problem.Failed, "the disk cannot be loaded").Because(err)
	default:
	}
	return json.NewEncoder(out).Encode(done{Requests: requests.Load()})
}

// requests reads or writes blocks of the file, one at a time, at a share of the rate.
func (o *order) requests(quit *atomic.Bool, count *atomic.Int64) error {
	block := min(max(o.Block, 512), maxBlock)
	data := aligned(block)
	places := int64(fileSize / block)
	next := rand.Int64N(places)
	gap := time.Duration(float64(max(o.Threads, 1)) / max(o.Rate, 1e-3) * float64(time.Second))
	for due := time.Now(); !quit.Load(); due = due.Add(gap) {
		for wait := time.Until(due); wait > 0 && !quit.Load(); wait = time.Until(due) {
			time.Sleep(min(wait, 50*time.Millisecond))
		}
		if behind := time.Since(due); behind > time.Second { // a limit holds it back: no catching up
			due = time.Now()
		}
		if o.Random {
			next = rand.Int64N(places)
		} else {
			next = (next + 1) % places
		}
		var err error
		if o.Write {
			_, err = unix.Pwrite(loadFile, data, next*int64(block))
		} else {
			_, err = unix.Pread(loadFile, data, next*int64(block))
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		count.Add(1)
	}
	return nil
}

// aligned returns a buffer as O_DIRECT needs it.
func aligned(size int) []byte {
	const page = 4096
	b := make([]byte, size+page)
	shift := page - int(uintptr(unsafe.Pointer(&b[0]))%page)
	return b[shift : shift+size : shift+size]
}

// A child is a running load in a control group.
type child struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	out, bad bytes.Buffer
	began    time.Time
	exited   chan error
	requests float64 // per second, set by end
}

// startChild starts a child in a control group, or in this process's own if group is nil.
func startChild(ctx context.Context, group *cgroup.Group, file *os.File, o order) (*child, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: host.Program(ctx, "/proc/self/exe", "lab", Verb), exited: make(chan error, 1)}
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.bad
	if file != nil {
		c.cmd.ExtraFiles = []*os.File{file}
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	switch {
	case group == nil:
		err = c.cmd.Start()
	case len(group.Processes()) == 0: // a start would create the group of a node that has ended
		err = errors.New("the node has ended")
	default:
		err = host.OnLockedThread(func() error { return group.Inner().Start(c.cmd) })
	}
	if err != nil {
		return nil, problem.New(problem.Failed, "no process can be started in the control group of the node").Because(err)
	}
	go func() { c.exited <- c.cmd.Wait() }()
	c.began = time.Now()
	if _, err := c.in.Write(append(text, '\n')); err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

func (c *child) offered() float64 { return 0 }

// err returns an error if the child has ended already.
func (c *child) err() error {
	select {
	case err := <-c.exited:
		c.exited <- err
		return c.problem(err)
	default:
		return nil
	}
}

func (c *child) problem(err error) error {
	if said, _, _ := strings.Cut(strings.TrimSpace(c.bad.String()), "\n"); said != "" {
		return problem.New(problem.Failed, "the load has ended: %s", problem.Truncate(said, 300)).Because(err)
	}
	return problem.New(problem.Failed, "the load has ended").Because(err)
}

// end ends the child and reads how many requests it has made.
func (c *child) end() error {
	_ = c.in.Close()
	var err error
	const endTimeout, killTimeout = 30 * time.Second, 10 * time.Second // a request may wait for the limit
	select {
	case err = <-c.exited:
	case <-time.After(endTimeout):
		_ = c.cmd.Cancel()
		select {
		case err = <-c.exited:
		case <-time.After(killTimeout):
			return problem.New(problem.Failed, "the load cannot be ended; its node may be frozen")
		}
	}
	if err != nil {
		return c.problem(err)
	}
	var d done
	if err := json.Unmarshal(c.out.Bytes(), &d); err == nil {
		c.requests = float64(d.Requests) / time.Since(c.began).Seconds()
	}
	return nil
}
