//! The page with all reports of the chosen days.

use std::sync::Arc;

use app::staff::pages::reports::{Figures, reports_page};
use domain::api::reports::{ReportQuery, ReportScreen};
use language::say;

use super::super::{PageError, PageQuery, SignedInPageResult};
use super::visit::StaffVisit;
use crate::AppState;
use backoffice::reports::{self, Range};
use http::{Code, Problem, page_locale};

pub(super) async fn page(visit: StaffVisit, PageQuery(query): PageQuery<ReportQuery>) -> SignedInPageResult {
    let (state, theatre) = (&visit.state, &visit.desk.theatre);
    let found = state.catalogue.theatre(theatre).await?.ok_or(PageError::NotFound)?;
    let screens = reports::screens(state, theatre).await?;
    let screen = query.screen.clone().filter(|id| !id.is_empty());
    match figures(state, theatre, &found.time_zone, &query, &screens).await {
        Ok((range, figures)) => {
            let (from, to, figures) = (range.from.to_string(), range.to.to_string(), Some(figures));
            Ok(visit.show(|desk| reports_page(desk, from, to, screens, screen, figures)))
        }
        Err(problem) => {
            let (from, to) = (query.from.unwrap_or_default(), query.to.unwrap_or_default());
            let page = visit.fail(&problem, in_words(&problem));
            Ok(page.show(|desk| reports_page(desk, from, to, screens, screen, None)))
        }
    }
}

/// The page's own message. The general message about many visitors does not fit reports.
fn in_words(problem: &Problem) -> Option<String> {
    match problem.code() {
        Code::Malformed => Some(say!(in page_locale::language(), "reports.bad_days", days = reports::MAX_DAYS)),
        Code::Overloaded => Some(say!(in page_locale::language(), "reports.too_much")),
        _ => None,
    }
}

/// The reports of a theatre or of one screen. Seats are reported for one room only, not for several screens.
async fn figures(
    state: &AppState,
    theatre: &str,
    zone: &str,
    query: &ReportQuery,
    screens: &[ReportScreen],
) -> Result<(Range, Figures), Problem> {
    let range = Range::read(query, zone, state.clock.now())?;
    let screen = query.screen.as_deref().filter(|id| !id.is_empty());
    // One after another: a page takes one turn at a time.
    let sales = reports::sales(state, theatre, &range, screen).await?;
    let funnel = reports::funnel(state, theatre, &range, screen).await?;
    let takings = reports::takings(state, theatre, &range, screen).await?;
    let only = if let [only] = screens { Some(only.id.as_str()) } else { None };
    let occupancy = match screen.or(only) {
        Some(screen) => Some(reports::occupancy(state, theatre, &range, Some(screen)).await?),
        None => None,
    };
    let room = match occupancy.as_ref().and_then(|report| report.show) {
        Some(show) => Some(Arc::clone(&state.catalogue.find_show(show).await?.layout)),
        None => None,
    };
    let calendar = range.from.iter_days().take_while(|day| *day <= range.to).map(|day| day.to_string()).collect();
    Ok((range, Figures { calendar, sales, funnel, takings, occupancy, room }))
}
