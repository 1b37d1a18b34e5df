package main

import (
	"bytes"
	"os"
	"testing"
)

// TestPicture: the picture in the README is drawn from the recorded figures.
func TestPicture(t *testing.T) {
	recorded, err := os.Open("../recorded.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer recorded.Close()
	var made bytes.Buffer
	if err := draw(recorded, &made); err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile("../../../docs/images/outage.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(shown, made.Bytes()) {
		t.Error("docs/images/outage.svg is not what go run ./bench/switch/plot makes of bench/switch/recorded.jsonl")
	}
}
