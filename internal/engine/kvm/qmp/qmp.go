// Package qmp is a client of QEMU's monitor (QEMU Machine Protocol, docs/interop/qmp-spec of QEMU).
// What is at its other end is believed no more than the guest that may have taken it over: what it
// says is bounded, and nobody waits for it longer than a context says.
package qmp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/text/sanitize"
)

// most bounds one message of QEMU's, and all events that are kept until somebody asks for them, in bytes.
const most = 1 << 20

// A Client is a connection to a monitor. A monitor serves one at a time: others wait for their
// turn. One goroutine uses a Client at a time.
type Client struct {
	conn  *net.UnixConn
	in    *bufio.Reader
	line  []byte // as much as has come of a message
	given int    // commands so far
	kept  []Event
	size  int // of what is kept, in bytes
}

// An Event is something that has happened to a machine.
type Event struct {
	Name string          `json:"event"`
	Data json.RawMessage `json:"data"`
}

// A Refusal is a command that QEMU does not do.
type Refusal struct{ Command, Class, What string }

func (r *Refusal) Error() string {
	return fmt.Sprintf("QEMU does not do %s: %s", r.Command, sanitize.Line(r.What))
}

// Unknown reports whether QEMU is too old, or built without the part, for a command.
func (r *Refusal) Unknown() bool { return r.Class == "CommandNotFound" }

// Dial connects to the monitor at a socket, waits for its turn until ctx ends, and begins to give commands.
func Dial(ctx context.Context, path string) (*Client, error) {
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err == nil {
			return greet(ctx, conn.(*net.UnixConn))
		}
		if waited := host.Pause(ctx, 10*time.Millisecond); waited != nil {
			return nil, errors.Join(waited, err)
		}
	}
}

func greet(ctx context.Context, conn *net.UnixConn) (*Client, error) {
	c := &Client{conn: conn, in: bufio.NewReader(conn)}
	err := c.within(ctx, "there is no greeting", func() error {
		_, err := c.next(func(m *message) bool { return m.Greeting != nil })
		return err
	})
	if err == nil {
		err = c.Do(ctx, "qmp_capabilities", nil, nil)
	}
	if err != nil {
		conn.Close() //nolint:errcheck // nothing was asked
		return nil, err
	}
	return c, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Do sends a command with its arguments, if any, and stores its answer in what into points to, if anything.
func (c *Client) Do(ctx context.Context, command string, arguments, into any) error {
	return c.do(ctx, command, arguments, into, nil)
}

// Hand hands over a file. Later commands call it by name, until one of them has used it up.
func (c *Client) Hand(ctx context.Context, name string, f *os.File) error {
	return c.do(ctx, "getfd", map[string]string{"fdname": name}, nil, f)
}

// Add hands over a file that QEMU keeps in a set, whose name it can open like a path: /dev/fdset/N.
func (c *Client) Add(ctx context.Context, f *os.File) (path string, err error) {
	var set struct {
		ID int `json:"fdset-id"`
	}
	if err := c.do(ctx, "add-fd", nil, &set, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("/dev/fdset/%d", set.ID), nil
}

// Drop lets QEMU close what it was handed so, unless it uses it.
func (c *Client) Drop(ctx context.Context, path string) error {
	var set int
	if _, err := fmt.Sscanf(path, "/dev/fdset/%d", &set); err != nil {
		return err
	}
	return c.do(ctx, "remove-fd", map[string]int{"fdset-id": set}, nil, nil)
}

// Await returns the next event of one of some names, or of any; also one that came while something
// else was waited for.
func (c *Client) Await(ctx context.Context, names ...string) (e Event, err error) {
	wanted := func(e Event) bool { return len(names) == 0 || slices.Contains(names, e.Name) }
	if i := slices.IndexFunc(c.kept, wanted); i >= 0 {
		e = c.kept[i]
		c.forget(i)
		return e, nil
	}
	err = c.within(ctx, strings.TrimSpace("no event "+strings.Join(names, " or ")), func() error {
		m, err := c.next(func(m *message) bool { return m.Name != "" && wanted(m.Event) })
		e = m.Event
		return err
	})
	return e, err
}

// message is what QEMU says: a greeting, an answer, an error, or an event.
type message struct {
	Greeting json.RawMessage `json:"QMP"`
	Return   json.RawMessage `json:"return"`
	Error    *struct {
		Class string `json:"class"`
		What  string `json:"desc"`
	} `json:"error"`
	ID int `json:"id"`
	Event
}

func (c *Client) do(ctx context.Context, command string, arguments, into any, f *os.File) error {
	c.given++
	id := c.given // by which the answer is told from that of a command that nobody waits for any more
	text, err := json.Marshal(struct {
		Command   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        int    `json:"id"`
	}{command, arguments, id})
	if err != nil {
		return err
	}
	return c.within(ctx, command+" is not answered", func() error {
		if err := c.write(append(text, '\n'), f); err != nil {
			return err
		}
		m, err := c.next(func(m *message) bool {
			// 0: it has not understood the command
			return m.Return != nil && m.ID == id || m.Error != nil && (m.ID == id || m.ID == 0)
		})
		if err != nil {
			return err
		}
		if m.Error != nil {
			return &Refusal{command, m.Error.Class, m.Error.What}
		}
		if into == nil {
			return nil
		}
		return jsonlimit.Unmarshal(m.Return, into)
	})
}

// write writes a command, and with its first byte a file.
func (c *Client) write(text []byte, f *os.File) error {
	if f == nil {
		_, err := c.conn.Write(text)
		return err
	}
	n, _, err := c.conn.WriteMsgUnix(text, unix.UnixRights(int(f.Fd())), nil)
	if err == nil && n < len(text) {
		_, err = c.conn.Write(text[n:])
	}
	return err
}

// next returns the next message that is wanted, keeps events that come before it, and passes over all else.
func (c *Client) next(wanted func(*message) bool) (*message, error) {
	for {
		if err := c.read(); err != nil {
			return &message{}, err
		}
		m := new(message)
		err := jsonlimit.Unmarshal(c.line, m)
		c.line = c.line[:0]
		switch {
		case err != nil:
			return m, err
		case wanted(m):
			return m, nil
		case m.Name != "":
			c.keep(m.Event)
		}
	}
}

// read reads on to the end of a message.
func (c *Client) read() error {
	for {
		part, err := c.in.ReadSlice('\n')
		c.line = append(c.line, part...)
		if len(c.line) > most {
			return errors.New("it talks without end")
		}
		if err == nil {
			if len(bytes.TrimSpace(c.line)) > 0 {
				return nil
			}
			c.line = c.line[:0]
			continue
		}
		if errors.Is(err, io.EOF) {
			return errors.New("it has ended")
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// keep keeps an event until somebody asks for it; of too many, the last.
func (c *Client) keep(e Event) {
	c.kept = append(c.kept, e)
	c.size += len(e.Name) + len(e.Data)
	for c.size > most {
		c.forget(0)
	}
}

func (c *Client) forget(i int) {
	c.size -= len(c.kept[i].Name) + len(c.kept[i].Data)
	c.kept = slices.Delete(c.kept, i, i+1)
}

// within speaks with QEMU as long as ctx allows.
func (c *Client) within(ctx context.Context, what string, speak func() error) error {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.conn.SetDeadline(time.Unix(1, 0))
		close(ended)
	})
	err := speak()
	if !stop() {
		<-ended
		_ = c.conn.SetDeadline(time.Time{})
		if err != nil {
			err = context.Cause(ctx)
		}
	}
	var refused *Refusal
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("QEMU's monitor: %s: %w", what, err)
}
