package hosts

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"

	"orrery/internal/image/imported"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// stamping is held by who gives images their stamps: what is made of a site shares them with it.
var stamping sync.Mutex

// stampImages lets the imported images of a site be known by what is in their files, and returns
// these by their digests.
func stampImages(ctx context.Context, s *site.Site) (files map[string]string, err error) {
	stamping.Lock()
	defer stamping.Unlock()
	files = map[string]string{}
	for i := range s.Images {
		img := &s.Images[i]
		file := img.File()
		if !filepath.IsAbs(file) || img.Told {
			continue // of a release, of which hosts say what it was staged from
		}
		digest := img.Content()
		if digest == "" {
			digest, err = imported.Machine().Digest(ctx, file)
			switch {
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case errors.Is(err, fs.ErrPermission): // whoever may not read it builds nothing
				continue
			case problem.Is(err, problem.Surprise):
				return nil, err
			case err != nil:
				return nil, problem.New(problem.Failed, "import %s: it cannot be read", file).Because(problem.Reason(err)).
					At("site.toml").Try("correct `import` of image %s", img.Name)
			}
			img.Stamp = site.ContentStamp(digest)
		}
		files[digest] = file
	}
	return files, ctx.Err()
}
