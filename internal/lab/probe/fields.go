package probe

import "bytes"

// These functions parse text without copying it. Invalid text reads as 0 or as empty, so that an
// unknown line of a kernel is not an error.

// line splits off the first line.
func line(text []byte) (first, rest []byte) {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return text[:i], text[i+1:]
	}
	return text, nil
}

// word splits off the first word.
func word(text []byte) (first, rest []byte) {
	start := 0
	for start < len(text) && (text[start] == ' ' || text[start] == '\t') {
		start++
	}
	end := start
	for end < len(text) && text[end] != ' ' && text[end] != '\t' {
		end++
	}
	return text[start:end], text[end:]
}

// number returns the decimal number at the beginning of a word.
func number(w []byte) (n uint64) {
	for _, c := range w {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}

// hexadecimal returns the number in a word of softnet_stat.
func hexadecimal(w []byte) (n uint64) {
	for _, c := range w {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | uint64(c-'a'+10)
		default:
			return n
		}
	}
	return n
}

// decimal parses a number such as 0.25 in /proc/loadavg.
func decimal(w []byte) float64 {
	whole, part, _ := bytes.Cut(w, []byte("."))
	x, scale := float64(number(part)), 1.0
	for range part {
		scale *= 10
	}
	return float64(number(whole)) + x/scale
}

// numbers parses words into a slice and returns how many there were.
func numbers(text []byte, into []uint64) int {
	for i := range into {
		var w []byte
		if w, text = word(text); len(w) == 0 {
			return i
		}
		into[i] = number(w)
	}
	return len(into)
}

// after returns what follows a prefix. ok is false if the text does not begin with it.
func after(text []byte, prefix string) (rest []byte, ok bool) {
	if len(text) < len(prefix) || string(text[:len(prefix)]) != prefix {
		return nil, false
	}
	return text[len(prefix):], true
}
