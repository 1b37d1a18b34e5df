package kvm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/visible"
)

// mostAnswer bounds one message of QEMU's, in bytes.
const mostAnswer = 1 << 20

// A qmp is a connection to the monitor of a machine (QEMU Machine Protocol, docs/interop/qmp-spec in QEMU).
type qmp struct {
	conn  net.Conn
	lines *bufio.Scanner
}

// monitor connects to the monitor of a machine, which serves one at a time, and waits for its turn until ctx ends.
func (m machine) monitor(ctx context.Context) (*qmp, error) {
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", filepath.Join(m.run, monitor))
		if err == nil {
			return greet(ctx, conn)
		}
		if waited := host.Pause(ctx, 10*time.Millisecond); waited != nil {
			return nil, errors.Join(waited, err)
		}
	}
}

// greet takes the greeting of a monitor and begins to give commands.
func greet(ctx context.Context, conn net.Conn) (*qmp, error) {
	q := &qmp{conn, bufio.NewScanner(conn)}
	q.lines.Buffer(nil, mostAnswer)
	if _, err := q.do(ctx, ""); err != nil {
		conn.Close() //nolint:errcheck // nothing was asked
		return nil, err
	}
	if _, err := q.do(ctx, "qmp_capabilities"); err != nil {
		conn.Close() //nolint:errcheck // nothing was asked
		return nil, err
	}
	return q, nil
}

// Close ends the connection.
func (q *qmp) Close() error { return q.conn.Close() }

// message is what QEMU says: a greeting, an answer, an error, or an event.
type message struct {
	Greeting json.RawMessage `json:"QMP"`
	Return   json.RawMessage `json:"return"`
	Error    *struct {
		Class string `json:"class"`
		What  string `json:"desc"`
	} `json:"error"`
	Event string `json:"event"`
}

// do gives a command and gives its answer, passing over events. The empty command waits for the greeting.
func (q *qmp) do(ctx context.Context, command string) (json.RawMessage, error) {
	stop := context.AfterFunc(ctx, func() { _ = q.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if command != "" {
		text, err := json.Marshal(struct {
			Command string `json:"execute"`
		}{command})
		if err != nil {
			return nil, err
		}
		if _, err := q.conn.Write(append(text, '\n')); err != nil {
			return nil, q.failed(ctx, command, err)
		}
	}
	for q.lines.Scan() {
		var m message
		if err := json.Unmarshal(q.lines.Bytes(), &m); err != nil {
			return nil, q.failed(ctx, command, err)
		}
		switch {
		case m.Error != nil:
			return nil, fmt.Errorf("QEMU does not do %s: %s", command, visible.Line(m.Error.What))
		case m.Return != nil, m.Greeting != nil && command == "":
			return append(json.RawMessage(nil), m.Return...), nil
		}
	}
	err := q.lines.Err()
	if err == nil {
		err = errors.New("it has ended")
	}
	return nil, q.failed(ctx, command, err)
}

func (q *qmp) failed(ctx context.Context, command string, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("QEMU's monitor: %s: %w", strings.TrimSpace(command+" is not answered"), err)
}
