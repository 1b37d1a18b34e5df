package transfer

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// TestWhole: what was written is read. A stream without its end is reported as cut, wherever that
// was.
func TestWhole(t *testing.T) {
	var sent bytes.Buffer
	w := NewFramedWriter(&sent)
	text := bytes.Repeat([]byte("0123456789"), 300_000)
	for _, b := range [][]byte{text[:10], nil, text[10:]} {
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(NewFramedReader(bytes.NewReader(sent.Bytes()))); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes came: %v", len(got), err)
	}
	for _, n := range []int{0, 3, 4, 10, 14, 18, 1 << 20, sent.Len() - 4, sent.Len() - 1} {
		if _, err := io.ReadAll(NewFramedReader(bytes.NewReader(sent.Bytes()[:n]))); !errors.Is(err, ErrConnectionLost) {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
	}
	if _, err := io.ReadAll(NewFramedReader(bytes.NewReader([]byte{255, 255, 255, 255, 1}))); err == nil ||
		errors.Is(err, ErrConnectionLost) {
		t.Errorf("a part of any size: %v", err)
	}
}
