package kvm

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// serveMonitor serves the monitor of a machine, one connection after the other. A function returns
// the answer to each command, as "return" or "error", or "" for none. It also returns which events
// follow, and whether the connection ends instead.
func serveMonitor(t *testing.T, run string,
	answer func(command string, of map[string]any) (says, events string, ends bool)) {
	t.Helper()
	must(t, os.MkdirAll(run, 0o700))
	l, err := net.Listen("unix", filepath.Join(run, monitorSocket))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			speak(conn, answer)
			conn.Close()
		}
	}()
}

func speak(conn net.Conn, answer func(string, map[string]any) (string, string, bool)) {
	fmt.Fprintln(conn, `{"QMP":{"version":{"qemu":{"major":7,"minor":2,"micro":0},"package":""},"capabilities":[]}}`)
	for in := bufio.NewScanner(conn); in.Scan(); {
		var asked struct {
			Execute   string
			Arguments map[string]any
			ID        json.RawMessage
		}
		if json.Unmarshal(in.Bytes(), &asked) != nil {
			return
		}
		says, events, ends := `"return":{}`, "", false
		if asked.Execute != "qmp_capabilities" {
			says, events, ends = answer(asked.Execute, asked.Arguments)
		}
		if ends {
			return
		}
		if says != "" {
			fmt.Fprintf(conn, `{%s,"id":%s}`+"\n%s", says, asked.ID, events)
		}
	}
}
