package kvm

import (
	"bytes"
	"encoding/binary"
	"image/png"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host/process"
)

// shows connects to the screen of a machine as two viewers at once (RFC 6143, 7.1 to 7.3), and
// checks a picture of it. QEMU does not listen on a port.
func (e *Engine) shows(t *testing.T, ref engine.Ref) {
	t.Helper()
	of := e.Screen(ref)
	for range 2 {
		conn, err := of.Open(t.Context())
		must(t, err)
		defer conn.Close()
		must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		hear := func(long int) []byte {
			text := make([]byte, long)
			if _, err := io.ReadFull(conn, text); err != nil {
				t.Fatal(err)
			}
			return text
		}
		say := func(text string) {
			_, err := io.WriteString(conn, text)
			must(t, err)
		}
		if greeting := string(hear(12)); greeting != "RFB 003.008\n" {
			t.Fatalf("%q", greeting)
		}
		say("RFB 003.008\n")
		if kinds := hear(int(hear(1)[0])); !bytes.Equal(kinds, []byte{1}) {
			t.Fatalf("it asks for %v: a password, say", kinds)
		}
		say("\x01")
		if result := hear(4); !bytes.Equal(result, make([]byte, 4)) {
			t.Fatalf("%v", result)
		}
		say("\x01") // share the screen with others
		header := hear(24)
		width, height := binary.BigEndian.Uint16(header), binary.BigEndian.Uint16(header[2:])
		name := string(hear(int(binary.BigEndian.Uint32(header[20:]))))
		if width < 320 || height < 200 || !strings.Contains(name, ref.Site+"/"+ref.Name) {
			t.Errorf("%q has %d by %d pixels", name, width, height)
		}
	}
	text, err := of.Picture(t.Context())
	must(t, err)
	picture, err := png.Decode(bytes.NewReader(text))
	must(t, err)
	lit := 0
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			if r, _, _, _ := picture.At(x, y).RGBA(); r > 0 {
				lit++
			}
		}
	}
	if lit == 0 {
		t.Errorf("of %v, nothing is lit: its firmware says what it boots", picture.Bounds())
	}
	for _, kind := range []string{"tcp", "tcp6"} {
		ports, err := os.ReadFile(process.Host.File(e.machine(ref).qemu(), "net/"+kind))
		must(t, err)
		if n := bytes.Count(ports, []byte("\n")); n != 1 {
			t.Errorf("QEMU has ports: %s", ports)
		}
	}
}
