package site

import (
	"cmp"
	"encoding/hex"
	"strings"
)

// contentPrefix is the prefix of the stamp of an image that is identified by the content of its file.
// On sites with several hosts, every host with a copy of the file then has the same image.
const contentPrefix = "sha256:"

// ContentStamp returns a stamp from the hexadecimal digest of a file.
func ContentStamp(digest string) string { return contentPrefix + digest }

// ContentDigest returns the digest of the imported file. It returns "" if the image is not imported, or
// if its path and modification time identify it.
func (i *Image) ContentDigest() string {
	digest, ok := strings.CutPrefix(i.Stamp, contentPrefix)
	if b, err := hex.DecodeString(digest); !ok || err != nil || len(b) != 32 || strings.ToLower(digest) != digest {
		return ""
	}
	return digest
}

// SourceFile returns the file from which the image is imported, or "".
func (i *Image) SourceFile() string { return cmp.Or(i.From, i.Import) }

// Recipe returns a text that identifies what is imported. It changes when the image changes.
func (i *Image) Recipe() string {
	if i.ContentDigest() != "" {
		return i.Stamp
	}
	return i.Import + " " + i.Stamp
}
