package sanitize

import "testing"

func TestUnmarked(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"x":                             "x",
		"\xef\xbb\xbfx":                 "x",
		"\xef\xbb\xbf\xef\xbb\xbfx":     "\xef\xbb\xbfx", // the second mark is part of the text
		"x\xef\xbb\xbf":                 "x\xef\xbb\xbf",
		"\xff\xfex\x00":                 "UTF-16",
		"\xfe\xff\x00x":                 "UTF-16",
		"\xff\xfe\x00\x00x\x00\x00\x00": "UTF-32",
		"\x00\x00\xfe\xff\x00\x00\x00x": "UTF-32",
	} {
		got, err := StripBOM([]byte(text))
		if err != nil {
			got = []byte(err.Error()[len("it is encoded as "):][:6])
		}
		if string(got) != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
