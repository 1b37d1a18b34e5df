package host

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"orrery/internal/text/shell"
)

// PutByCommand implements Put for a Runner that can only run commands. It sends all files in one
// tar archive, because entering a node costs more than writing a file. Then it moves them into
// place one by one, so that each is replaced atomically.
func PutByCommand(ctx context.Context, r Runner, files ...File) error {
	if len(files) == 0 {
		return nil
	}
	archive, moves, err := packFiles(files)
	if err != nil {
		return err
	}
	script := "set -eu\nd=$(mktemp -d /var/tmp/.orrery.XXXXXX)\ntrap 'rm -rf \"$d\"' EXIT\ntar -xpf - -C \"$d\"\n" + moves
	return r.Run(ctx, Command{Args: []string{"/bin/sh", "-c", script, "put"}, Stdin: bytes.NewReader(archive)})
}

func packFiles(files []File) (archive []byte, script string, err error) {
	var b bytes.Buffer
	var moves strings.Builder
	var dirs []string
	w := tar.NewWriter(&b)
	for i, f := range files {
		user, group, ok := strings.Cut(f.Owner, ":")
		if f.Owner == "" {
			user, group = "root", "root"
		} else if !ok {
			group = user
		}
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: fmt.Sprint(i), Mode: int64(f.Mode), Size: int64(len(f.Content)),
			Uname: user, Gname: group, Format: tar.FormatPAX,
		}
		if f.Link != "" {
			h.Typeflag, h.Linkname, h.Size, h.Mode = tar.TypeSymlink, f.Link, 0, 0o777
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, "", err
		}
		if f.Link == "" {
			if _, err := w.Write(f.Content); err != nil {
				return nil, "", err
			}
		}
		dirs = append(dirs, shell.Quote(path.Dir(f.Path)))
		fmt.Fprintf(&moves, "mv -fT -- \"$d/%d\" %s\n", i, shell.Quote(f.Path))
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	slices.Sort(dirs)
	return b.Bytes(), "mkdir -p -- " + strings.Join(slices.Compact(dirs), " ") + "\n" + moves.String(), nil
}
