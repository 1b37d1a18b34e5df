package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

// answers returns a Client of a monitor that gets its answers from a function, or succeeds if that
// returns "".
func answers(t *testing.T, say func(command string) string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), serves(t, func(conn *net.UnixConn) {
		fmt.Fprintln(conn, greeting)
		for in := bufio.NewScanner(conn); in.Scan(); {
			var asked struct{ Execute string }
			_ = json.Unmarshal(in.Bytes(), &asked)
			text := say(asked.Execute)
			if text == "" {
				text = done
			}
			fmt.Fprintln(conn, numbered(text, in.Bytes()))
		}
	}))
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func tells(status string) string {
	return `{"event":"MIGRATION","data":{"status":"` + status + `"}}`
}

// TestSend: the state counts as sent when QEMU says so, and the downtime is QEMU's.
func TestSend(t *testing.T) {
	asked := 0
	c := answers(t, func(command string) string {
		switch command {
		case "migrate":
			return tells("setup") + "\n" + done + "\n" + tells("active") + "\n" + tells("completed")
		case "query-migrate":
			if asked++; asked == 1 { // it has not completed
				return `{"return":{"status":"device"}}`
			}
			return `{"return":{"status":"completed","downtime":17,"total-time":170,"ram":{"transferred":4096}}}`
		}
		return ""
	})
	sent, err := c.Send(t.Context(), os.Stdin)
	if err != nil || sent.Downtime != 17 || sent.Total != 170 || sent.RAM.Transferred != 4096 {
		t.Errorf("%+v, %v", sent, err)
	}
}

// TestSendFails: if QEMU fails or cancels, the error has QEMU's words.
func TestSendFails(t *testing.T) {
	for name, of := range map[string]struct{ migrate, query, want string }{
		"refused": {`{"error":{"class":"GenericError","desc":"vhost-user-fs cannot be migrated"}}`, "",
			"vhost-user-fs cannot"},
		"fails": {done + "\n" + tells("failed"), `{"return":{"status":"failed","error-desc":"no \u001b[2Jroom"}}`,
			"no \\x1b[2Jroom"},
		"ends": {done + "\n" + tells("cancelled"), `{"return":{"status":"cancelled"}}`, "cancelled"},
		"lies": {done + "\n" + `{"event":"MIGRATION","data":7}`, "", "cannot unmarshal"},
	} {
		c := answers(t, func(command string) string {
			return map[string]string{"migrate": of.migrate, "query-migrate": of.query}[command]
		})
		if sent, err := c.Send(t.Context(), os.Stdin); err == nil || !strings.Contains(err.Error(), of.want) {
			t.Errorf("%s: %+v, %v", name, sent, err)
		}
	}
}

// TestSendTooLong: a caller that times out learns what became of the machine, whose state may have
// been sent.
func TestSendTooLong(t *testing.T) {
	for status, want := range map[string]bool{"cancelled": false, "completed": true, "received": false} {
		begun := make(chan struct{})
		c := answers(t, func(command string) string {
			switch command {
			case "migrate":
				defer close(begun)
				return done + "\n" + tells("active")
			case "query-migrate":
				return `{"return":{"status":"` + strings.ReplaceAll(status, "received", "completed") + `"}}`
			case "query-status":
				return map[string]string{"completed": `{"return":{"status":"postmigrate"}}`,
					"received": `{"return":{"status":"running"}}`}[status]
			}
			return ""
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { <-begun; cancel(errors.New("no more time")) }()
		if sent, err := c.Send(ctx, os.Stdin); (sent != nil) != want || (err == nil) != want {
			t.Errorf("%s: %+v, %v", status, sent, err)
		}
	}
}

func TestStatus(t *testing.T) {
	c := answers(t, func(string) string { return `{"return":{"status":"postmigrate","running":false}}` })
	if status, err := c.Status(t.Context()); status != Sent || err != nil {
		t.Error(status, err)
	}
}
