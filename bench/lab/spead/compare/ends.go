package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"orrery/internal/lab/search"
	"orrery/internal/lab/spead"
)

// A program is a process at one end that writes lines.
type program struct {
	*exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func begin(args ...string) (*program, error) {
	p := &program{Cmd: exec.Command(args[0], args[1:]...)}
	p.Stderr = os.Stderr
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.lines = bufio.NewScanner(out)
	if p.in, err = p.StdinPipe(); err != nil {
		return nil, err
	}
	return p, p.Start()
}

func (p *program) ask(order string, answer any) error {
	if _, err := io.WriteString(p.in, order); err != nil {
		return err
	}
	if !p.lines.Scan() {
		return fmt.Errorf("%s did not answer %s", p.Path, order)
	}
	return json.Unmarshal(p.lines.Bytes(), answer)
}

func (p *program) end() {
	_ = p.in.Close()
	_ = p.Wait()
}

// A sender sends to any receiver.
type sender struct {
	*program
	length time.Duration
}

func newSender(_ context.Context, o options) (*sender, error) {
	p, err := begin(o.orrery, "spead", "send", "--session", "--heap", strconv.Itoa(o.heap), "--packet",
		strconv.Itoa(o.packet), o.at)
	return &sender{p, o.trial}, err
}

func (s *sender) close() { s.end() }

// A receiver listens before a trial, and reports afterwards how many heaps it received.
type receiver interface {
	listen() error
	heaps() (uint64, error)
	close()
}

// trial returns a search.Trial that uses one receiver.
func (s *sender) trial(r receiver) search.Trial {
	return func(ctx context.Context, rate float64) (search.Outcome, error) {
		if err := errors.Join(ctx.Err(), r.listen()); err != nil {
			return search.Outcome{}, err
		}
		order := spead.Order{Rate: rate, Seconds: s.length.Seconds()}
		if math.IsInf(rate, 1) {
			order.Rate = 0
		}
		line, err := json.Marshal(order)
		if err != nil {
			return search.Outcome{}, err
		}
		var sent spead.Sent
		if err := s.ask(string(line)+"\n", &sent); err != nil {
			return search.Outcome{}, err
		}
		got, err := r.heaps()
		return search.Outcome{Rate: rate, Achieved: sent.Rate, Goodput: sent.Rate * float64(got) / float64(sent.Heaps),
			Sent: sent.Heaps, Received: got,
			Valid: order.Rate == 0 || sent.Rate >= 0.99*rate}, err
	}
}

// A session is Orrery's receiver as used by the lab: one process for all trials.
type session struct {
	options
	*program
}

func (*session) String() string { return "orrery" }

func (s *session) listen() (err error) {
	if s.program == nil {
		s.program, err = begin("ip", "netns", "exec", s.namespace, s.orrery, "spead", "receive", "--session", "--heap",
			strconv.Itoa(s.heap), "--buffer", strconv.Itoa(s.buffer), s.at)
		if err != nil {
			return err
		}
		s.lines.Scan() // wait until it listens
	}
	return s.ask("begin\n", &spead.Ready{})
}

func (s *session) heaps() (uint64, error) {
	var got spead.Received
	err := s.ask("end\n", &got)
	return got.Heaps, err
}

func (s *session) close() {
	if s.program != nil {
		s.end()
		s.program = nil
	}
}

// once is a receiver that is started for each trial, as spead2's must be.
type once struct {
	options
	name   string
	theirs bool
	*program
}

func (o *once) String() string { return o.name }

func (o *once) close() {}

func (o *once) listen() (err error) {
	size := strconv.Itoa(o.buffer)
	args := []string{"ip", "netns", "exec", o.namespace, "timeout", "--preserve-status", "-s", "INT",
		fmt.Sprint(o.trial.Seconds()*3 + 1)}
	if o.theirs {
		args = append(args, o.spead2+"/spead2_recv", "--quiet", "--mem-pool", "--mem-lower", "1024", "--packet", "9200",
			"--buffer", size, o.at)
	} else {
		args = append(args, o.orrery, "spead", "receive", "--silence", "500ms", "--heap", strconv.Itoa(o.heap), "--buffer",
			size, o.at)
	}
	if o.program, err = begin(args...); err != nil {
		return err
	}
	port := o.at[strings.LastIndexByte(o.at, ':')+1:]
	for range 200 {
		table, err := exec.Command("ip", "netns", "exec", o.namespace, "ss", "-lunH", "sport = :"+port).Output()
		if err != nil || len(table) > 0 {
			time.Sleep(30 * time.Millisecond) // its threads are also ready
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("%s does not listen", o.name)
}

var received = regexp.MustCompile(`^Received (\d+) heaps$|^\{"heaps":(\d+)`)

func (o *once) heaps() (n uint64, err error) {
	err = fmt.Errorf("%s printed no result", o.name)
	for o.lines.Scan() {
		if m := received.FindStringSubmatch(o.lines.Text()); m != nil {
			n, err = strconv.ParseUint(m[1]+m[2], 10, 64)
		}
	}
	o.end()
	return n, err
}
