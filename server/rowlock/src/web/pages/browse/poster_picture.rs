//! Posters as PNG pictures, for previews of links: chats show no SVG.

use std::sync::LazyLock;

use anyhow::Context;
use app::pages::poster::{self, Shape, drawing};
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use bytes::Bytes;
use kurbo::{BezPath, PathEl};
use moka::future::Cache;
use tiny_skia::{Color, FillRule, Paint, Path, PathBuilder, Pixmap, Transform};

use super::super::{PageError, PagePath, PageResult};
use crate::AppState;
use http::cache_tags::CacheTags;
use http::caching::CachePolicy;
use tickets::png::{self, PixelFormat};

/// Size of a picture, pixels: the smallest that chats show in full width.
const WIDTH: u32 = 600;
const HEIGHT: u32 = 315;
/// Top of the picture in units of the poster: it cuts no sun.
const TOP: f32 = 20.0;
/// Bytes of pictures kept, each of some ten kilobytes: those of thousands of films. Drawing one takes milliseconds.
const PICTURE_BYTES_KEPT: u64 = 32 * 1024 * 1024;

/// By title and hue, which decide about all of a poster.
static PICTURES: LazyLock<Cache<(String, u16), Bytes>> = LazyLock::new(|| {
    let bytes = |_: &(String, u16), picture: &Bytes| u32::try_from(picture.len()).unwrap_or(u32::MAX);
    Cache::builder().max_capacity(PICTURE_BYTES_KEPT).weigher(bytes).build()
});

pub(super) async fn poster(State(state): State<AppState>, PagePath(id): PagePath<String>) -> PageResult {
    let film = state.catalogue.listings().film(&id).await?.ok_or(PageError::NotFound)?;
    let kept = CachePolicy::with_tags(CacheTags::default().film(&film.id));
    let (title, hue) = (film.title.clone(), film.hue);
    // One of several equal requests draws, and logs a failure. Each drawing is awaited in a slot of `BudgetLayer`, even
    // if its request is cancelled, so at most half as many run as the server has connections to its database.
    let drawn = PICTURES.try_get_with((film.title.clone(), hue), async move {
        let drawn = state.tasks.spawn_blocking(move || draw(&title, hue).map(|drawn| packed(&drawn))).await;
        let drawn = drawn.map_err(anyhow::Error::from).flatten();
        drawn.inspect_err(|cause| tracing::error!(film = id, %cause, "draw the picture of a poster failed"))
    });
    let picture = drawn.await.map_err(|_| PageError::Fault)?;
    Ok((kept, [(header::CONTENT_TYPE, "image/png")], picture).into_response())
}

/// Draws the middle of a poster.
fn draw(title: &str, hue: u16) -> anyhow::Result<Pixmap> {
    let (ground, shapes) = drawing(title, hue);
    let mut pixmap = Pixmap::new(WIDTH, HEIGHT).context("a picture has no such size")?;
    let [red, green, blue] = ground.rgb();
    pixmap.fill(Color::from_rgba8(red, green, blue, u8::MAX));
    let scale = WIDTH as f32 / poster::WIDTH as f32;
    let place = Transform::from_row(scale, 0.0, 0.0, scale, 0.0, -TOP * scale);
    for shape in &shapes {
        pixmap.fill_path(&outline(&shape.path)?, &paint(shape), FillRule::Winding, place, None);
    }
    Ok(pixmap)
}

/// The picture as a PNG file. Its ground is opaque.
fn packed(pixmap: &Pixmap) -> Bytes {
    let colours: Vec<u8> =
        pixmap.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
    let lines = colours.chunks_exact(3 * WIDTH as usize);
    Bytes::from(png::file(WIDTH, HEIGHT, PixelFormat::Rgb, lines))
}

fn paint(shape: &Shape) -> Paint<'static> {
    let [red, green, blue] = shape.fill.rgb();
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, (shape.opacity * 255 / 100) as u8);
    paint
}

/// A path of SVG as one to draw.
fn outline(path: &str) -> anyhow::Result<Path> {
    let mut outline = PathBuilder::new();
    for element in BezPath::from_svg(path)? {
        match element {
            PathEl::MoveTo(to) => outline.move_to(to.x as f32, to.y as f32),
            PathEl::LineTo(to) => outline.line_to(to.x as f32, to.y as f32),
            PathEl::QuadTo(by, to) => outline.quad_to(by.x as f32, by.y as f32, to.x as f32, to.y as f32),
            PathEl::CurveTo(by, and, to) => {
                outline.cubic_to(by.x as f32, by.y as f32, and.x as f32, and.y as f32, to.x as f32, to.y as f32)
            }
            PathEl::ClosePath => outline.close(),
        }
    }
    outline.finish().context("a path of the poster has no outline")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_poster_can_be_drawn() {
        let drawn: Vec<Pixmap> = ('a'..='z').map(|title| draw(&title.to_string(), 30).expect("a picture")).collect();
        for pixmap in &drawn {
            let first = pixmap.pixels().first();
            assert!(pixmap.pixels().iter().any(|pixel| Some(pixel) != first), "an empty picture");
            assert!(pixmap.pixels().iter().all(|pixel| pixel.alpha() == u8::MAX), "a picture with holes");
        }
        assert!(drawn.first() != drawn.last(), "two titles have one picture");
    }
}
