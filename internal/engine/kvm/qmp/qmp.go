// Package qmp is a client of QEMU's monitor (QEMU Machine Protocol, docs/interop/qmp-spec of QEMU).
// The client does not trust QEMU, which its guest may have taken over. It limits the size of
// messages, and waits no longer than the context allows.
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

// maxMessageBytes limits the size of a message, and of all events stored for later calls of Await, in bytes.
const maxMessageBytes = 1 << 20

// A Client is a connection to a monitor. A monitor serves one connection at a time, and others
// wait. Only one goroutine may use a Client at a time.
type Client struct {
	conn  *net.UnixConn
	in    *bufio.Reader
	line  []byte // the part of a message that has arrived
	given int    // number of commands sent
	kept  []Event
	size  int // of the events in kept, in bytes
}

// An Event is an event that QEMU reports.
type Event struct {
	Name string          `json:"event"`
	Data json.RawMessage `json:"data"`
}

// A CommandError is an error that QEMU returns for a command.
type CommandError struct{ Command, Class, What string }

func (r *CommandError) Error() string {
	return fmt.Sprintf("QEMU rejected %s: %s", r.Command, sanitize.Line(r.What))
}

// Unknown reports whether QEMU does not know the command, because it is too old or built without
// it.
func (r *CommandError) Unknown() bool { return r.Class == "CommandNotFound" }

// Dial connects to the monitor at a socket, waits for its turn until ctx ends, and negotiates
// capabilities.
func Dial(ctx context.Context, path string) (*Client, error) {
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err == nil {
			return greet(ctx, conn.(*net.UnixConn))
		}
		if waited := host.Sleep(ctx, 10*time.Millisecond); waited != nil {
			return nil, errors.Join(waited, err)
		}
	}
}

func greet(ctx context.Context, conn *net.UnixConn) (*Client, error) {
	c := &Client{conn: conn, in: bufio.NewReader(conn)}
	err := c.interruptible(ctx, "no greeting received", func() error {
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

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Do sends a command with its arguments, if not nil, and stores its answer in the value to which
// into points, if not nil.
func (c *Client) Do(ctx context.Context, command string, arguments, into any) error {
	return c.do(ctx, command, arguments, into, nil)
}

// PassFile passes QEMU a file. Later commands refer to it by name, until one of them uses it up.
func (c *Client) PassFile(ctx context.Context, name string, f *os.File) error {
	return c.do(ctx, "getfd", map[string]string{"fdname": name}, nil, f)
}

// AddFD passes QEMU a file that it keeps in an fdset. It returns the path /dev/fdset/N by which QEMU
// can open it.
func (c *Client) AddFD(ctx context.Context, f *os.File) (path string, err error) {
	var set struct {
		ID int `json:"fdset-id"`
	}
	if err := c.do(ctx, "add-fd", nil, &set, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("/dev/fdset/%d", set.ID), nil
}

// RemoveFD removes a file passed by Add. QEMU closes it unless it is in use.
func (c *Client) RemoveFD(ctx context.Context, path string) error {
	var set int
	if _, err := fmt.Sscanf(path, "/dev/fdset/%d", &set); err != nil {
		return err
	}
	return c.do(ctx, "remove-fd", map[string]int{"fdset-id": set}, nil, nil)
}

// Await returns the next event with one of the names, or any event if there are no names. It also
// returns events that arrived during other calls.
func (c *Client) Await(ctx context.Context, names ...string) (e Event, err error) {
	wanted := func(e Event) bool { return len(names) == 0 || slices.Contains(names, e.Name) }
	if i := slices.IndexFunc(c.kept, wanted); i >= 0 {
		e = c.kept[i]
		c.dropEvent(i)
		return e, nil
	}
	err = c.interruptible(ctx, strings.TrimSpace("no event "+strings.Join(names, " or ")), func() error {
		m, err := c.next(func(m *message) bool { return m.Name != "" && wanted(m.Event) })
		e = m.Event
		return err
	})
	return e, err
}

// message is what QEMU sends: a greeting, an answer, an error, or an event.
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
	id := c.given // tells the answer from those of earlier commands that timed out
	text, err := json.Marshal(struct {
		Command   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        int    `json:"id"`
	}{command, arguments, id})
	if err != nil {
		return err
	}
	return c.interruptible(ctx, command+" is not answered", func() error {
		if err := c.write(append(text, '\n'), f); err != nil {
			return err
		}
		m, err := c.next(func(m *message) bool {
			// The id is 0 if QEMU could not parse the command.
			return m.Return != nil && m.ID == id || m.Error != nil && (m.ID == id || m.ID == 0)
		})
		if err != nil {
			return err
		}
		if m.Error != nil {
			return &CommandError{command, m.Error.Class, m.Error.What}
		}
		if into == nil {
			return nil
		}
		return jsonlimit.Unmarshal(m.Return, into)
	})
}

// write sends a command and, if f is not nil, passes a file with its first byte.
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

// next returns the next wanted message. It stores events that come before it, and drops everything
// else.
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
			c.storeEvent(m.Event)
		}
	}
}

// read reads the rest of a message.
func (c *Client) read() error {
	for {
		part, err := c.in.ReadSlice('\n')
		c.line = append(c.line, part...)
		if len(c.line) > maxMessageBytes {
			return errors.New("it sends without end")
		}
		if err == nil {
			if len(bytes.TrimSpace(c.line)) > 0 {
				return nil
			}
			c.line = c.line[:0]
			continue
		}
		if errors.Is(err, io.EOF) {
			return errors.New("it has exited")
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// storeEvent stores an event for Await. It drops the oldest events if there are too many.
func (c *Client) storeEvent(e Event) {
	c.kept = append(c.kept, e)
	c.size += len(e.Name) + len(e.Data)
	for c.size > maxMessageBytes {
		c.dropEvent(0)
	}
}

func (c *Client) dropEvent(i int) {
	c.size -= len(c.kept[i].Name) + len(c.kept[i].Data)
	c.kept = slices.Delete(c.kept, i, i+1)
}

// interruptible calls speak, and interrupts it when ctx ends.
func (c *Client) interruptible(ctx context.Context, what string, speak func() error) error {
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
	var refused *CommandError
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("QEMU's monitor: %s: %w", what, err)
}
