package kvm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/kvm/qmp"
)

// A monitor plays QEMU's for this package: it runs some commands with the file that it received
// last, and records all commands.
type monitor struct {
	does map[string]func(*os.File) error
	told []string
}

func (m *monitor) serve(conn *net.UnixConn) {
	defer conn.Close()
	fmt.Fprintln(conn, `{"QMP":{}}`)
	var handed *os.File
	in, rights := make([]byte, 4096), make([]byte, 64)
	for {
		n, oob, _, _, err := conn.ReadMsgUnix(in, rights)
		if err != nil {
			return
		}
		if all, err := unix.ParseSocketControlMessage(rights[:oob]); err == nil && len(all) == 1 {
			fds, _ := unix.ParseUnixRights(&all[0])
			handed = os.NewFile(uintptr(fds[0]), "handed")
		}
		var asked struct {
			Execute   string
			Arguments json.RawMessage
			ID        int
		}
		_ = json.Unmarshal(in[:n], &asked)
		m.told = append(m.told, asked.Execute+" "+string(asked.Arguments))
		do := m.does[asked.Execute]
		if do == nil {
			do = func(*os.File) error { return nil }
		}
		switch err := do(handed); {
		case err != nil:
			fmt.Fprintf(conn, `{"id":%d,"error":{"class":"GenericError","desc":%q}}`+"\n", asked.ID, err)
		case asked.Execute == "add-fd":
			fmt.Fprintf(conn, `{"id":%d,"return":{"fdset-id":7,"fd":30}}`+"\n", asked.ID)
		default:
			fmt.Fprintf(conn, `{"id":%d,"return":{}}`+"\n", asked.ID)
		}
	}
}

func (m *monitor) dial(t *testing.T) *qmp.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "monitor.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		if conn, err := l.AcceptUnix(); err == nil {
			m.serve(conn)
		}
	}()
	q, err := qmp.Dial(t.Context(), path)
	must(t, err)
	t.Cleanup(func() { q.Close() })
	return q
}

// TestOpen: QEMU receives one end of a connection, and sends its greeting to the other.
func TestOpen(t *testing.T) {
	m := &monitor{does: map[string]func(*os.File) error{"add_client": func(f *os.File) error {
		_, err := io.WriteString(f, "RFB 003.008\n")
		return err
	}}}
	conn, err := openDisplay(t.Context(), m.dial(t))
	must(t, err)
	defer conn.Close()
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "RFB 003.008\n" {
		t.Errorf("%q, %v", line, err)
	}
	if want := `add_client {"fdname":"screen","protocol":"vnc","skipauth":true}`; !slices.Contains(m.told, want) {
		t.Errorf("it is told %q", m.told)
	}
}

// TestNoScreen: a machine without a screen keeps no file that it received.
func TestNoScreen(t *testing.T) {
	m := &monitor{does: map[string]func(*os.File) error{"add_client": func(*os.File) error { return io.EOF }}}
	if conn, err := openDisplay(t.Context(), m.dial(t)); err == nil || conn != nil ||
		!strings.Contains(err.Error(), "add_client") {
		t.Errorf("%v, %v", conn, err)
	}
	if last := m.told[len(m.told)-1]; last != `closefd {"fdname":"screen"}` {
		t.Errorf("it is told %q", m.told)
	}
}

// writes returns a monitor that writes a picture.
func writes(text string) *monitor {
	return &monitor{does: map[string]func(*os.File) error{"screendump": func(f *os.File) error {
		_, err := io.WriteString(f, text)
		return err
	}}}
}

// TestPicture: the picture has the pixels that QEMU wrote, including those that look like spaces.
// QEMU keeps no file.
func TestPicture(t *testing.T) {
	m := writes("P6\n2 2\n255\n\n\n   \t" + "\xff\x00\x80\x01\x02\x03")
	text, err := takePicture(t.Context(), m.dial(t))
	must(t, err)
	picture, err := png.Decode(bytes.NewReader(text))
	must(t, err)
	for at, want := range map[[2]int]color.NRGBA{{0, 0}: {10, 10, 32, 255}, {1, 0}: {32, 32, 9, 255},
		{0, 1}: {255, 0, 128, 255}, {1, 1}: {1, 2, 3, 255}} {
		if got := color.NRGBAModel.Convert(picture.At(at[0], at[1])); got != want {
			t.Errorf("at %v it is %v", at, got)
		}
	}
	if last := m.told[len(m.told)-1]; !slices.Contains(m.told, `screendump {"filename":"/dev/fdset/7"}`) ||
		last != `remove-fd {"fdset-id":7}` {
		t.Errorf("it is told %q", m.told)
	}
}

// TestPictureLies: an invalid, truncated or huge picture is an error, and takes no memory.
func TestPictureLies(t *testing.T) {
	for _, text := range []string{
		"", "GIF89a", "P6\n2 2\n255\n123", "P6\n0 5\n255\n", "P6\n-1 -1\n255\n", "P6\n1 1\n65535\n123456",
		"P6\n16777217 1\n255\n", "P6\n4097 4096\n255\n", "P6\n4611686018427387904 4\n255\n",
		"P6\n99999999999999999999 1\n255\n",
	} {
		if _, err := takePicture(t.Context(), writes(text).dial(t)); err == nil {
			t.Errorf("%q is taken for a picture", text)
		}
	}
	endless := &monitor{does: map[string]func(*os.File) error{"screendump": func(f *os.File) error {
		_, err := f.WriteAt([]byte("x"), 1<<40)
		return err
	}}}
	if _, err := takePicture(t.Context(), endless.dial(t)); err == nil {
		t.Error("what has no beginning is taken for a picture")
	}
}

// TestUnpatient: a QEMU that stands still is not waited for without end, neither before the picture is
// taken nor while it is.
func TestUnpatient(t *testing.T) {
	old := cleanupTimeout
	t.Cleanup(func() { cleanupTimeout = old })
	cleanupTimeout = 10 * time.Millisecond
	for _, command := range []string{"add-fd", "screendump"} {
		never := make(chan struct{})
		defer close(never)
		ctx, cancel := context.WithCancel(t.Context())
		m := &monitor{does: map[string]func(*os.File) error{command: func(*os.File) error { cancel(); <-never; return nil }}}
		if _, err := takePicture(ctx, m.dial(t)); err == nil {
			t.Errorf("%s is waited for without end", command)
		}
	}
}
