package apply

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"orrery/internal/image/imported"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
	"orrery/internal/treesync"
)

// build makes the host build a layer. If the layer is that of an imported image, the file is on
// this machine, and the host receives it first.
func (h *HostClient) build(ctx context.Context, s *plan.Step, say func(string)) error {
	if !s.Layer.IsBase() || s.Layer.Image.Import == "" {
		return h.Runs.Do(ctx, s, say)
	}
	img := s.Layer.Image
	content := img.ContentDigest()
	if content == "" {
		if !slices.ContainsFunc(h.Site().Hosts, func(one site.Host) bool { return !one.Local() }) {
			return h.Runs.Do(ctx, s, say)
		}
		return problem.New(problem.Unable,
			"image %s is of a release that was staged when the site had one host, and no host that answers has its layer",
			img.Name).At("host " + h.Name).
			Try("stage the release again under another number")
	}
	file, err := h.fileOf(&img, content)
	if err != nil {
		return err
	}
	img.From = file
	if !h.Local() {
		if err := h.send(ctx, file, content, say); err != nil {
			return err
		}
		img.Import, img.From = filepath.Base(img.Import), ""
	}
	as, layer := *s, *s.Layer
	layer.Image, as.Layer = img, &layer
	return h.Runs.Do(ctx, &as, say)
}

// fileOf returns the file on this machine from which an image is made. The file of a release is
// named by the hosts that keep the release. They can obtain no other files of this machine than
// those of the site's own images.
func (h *HostClient) fileOf(img *site.Image, content string) (string, error) {
	if own := img.SourceFile(); filepath.IsAbs(own) && !img.Remote {
		return own, nil
	}
	if file := h.Files[content]; file != "" {
		return file, nil
	}
	return "", problem.New(problem.Unable,
		"image %s was made from a file %s that is not what [image] imports now, and no host that answers has its layer",
		img.Name, img.Import).
		At("sha256 " + content).Try("import the file with that sha256 again, or stage the release again under another number")
}

// send sends a file to the host.
func (h *HostClient) send(ctx context.Context, file, content string, say func(string)) error {
	in, err := imported.Open(ctx, file)
	if errors.Is(err, fs.ErrNotExist) {
		return problem.New(problem.Mistake, "import %s: the file does not exist", file).
			Try("correct `import` of the image in site.toml")
	}
	if err != nil {
		return problem.New(problem.Failed, "import %s: the file cannot be read", file).Because(problem.PathErrorCause(err))
	}
	in.Close() //nolint:errcheck // it was not read
	tell := func(n int64) { say("sending " + filepath.Base(file) + ": " + humanize.Bytes(n)) }
	tell(0)
	err = treesync.Pipe(ctx, func(rw io.ReadWriter) error {
		return imported.Send(ctx, file, &progressWriter{ReadWriter: rw, say: tell})
	}, func(rw io.ReadWriter) error { return h.Layers.Receive(ctx, content, rw) })
	if err != nil && ctx.Err() == nil {
		return problem.New(problem.Kind(problem.ExitCode(err)), "import %s: it could not be sent to host %s", file, h.Name).
			Because(err).
			Try("%s", cmp.Or(hintOf(err), "run the same command again"))
	}
	return err
}

func hintOf(err error) string {
	var p *problem.Problem
	if errors.As(err, &p) {
		return p.Cure
	}
	return ""
}

// progressWriter is a stream that reports how many bytes were sent.
type progressWriter struct {
	io.ReadWriter
	say   func(int64)
	n, at int64
}

func (s *progressWriter) Write(p []byte) (int, error) {
	n, err := s.ReadWriter.Write(p)
	if s.n += int64(n); s.n-s.at >= 16<<20 {
		s.at = s.n
		s.say(s.n)
	}
	return n, err
}
